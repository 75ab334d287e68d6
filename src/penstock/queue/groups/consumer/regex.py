"""Regular expressions for topic names, without backtracking: all ways through a pattern are followed at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

STATES_MAX = 500
REPEATS_MAX = 250  # a topic name is not longer
DEPTH_MAX = 30
_CLASSES: dict[str, Callable[[str], bool]] = {
    "d": str.isdigit,
    "w": lambda c: c.isalnum() or c == "_",
    "s": str.isspace,
}

Test = Callable[[str], bool]


class PatternError(Exception):
    """Not a pattern, or one that costs too much; says why."""


@dataclass(slots=True)
class _State:
    """Takes a character to `after`, or nothing to each of `ways`."""

    test: Test | None = None
    after: int = -1
    ways: list[int] = field(default_factory=list)
    at_start: bool = False
    at_end: bool = False


class Machine:
    """The states of a pattern; `work_left` is counted down, and PatternError raised when it is used up."""

    def __init__(self, states: list[_State], first: int, last: int) -> None:
        self._states = states
        self._last = last
        self.work_left = 0
        self._first = first
        self._steps: dict[tuple[tuple[int, ...], str], tuple[int, ...]] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text fits."""
        now = self._closed([self._first], at_start=True, at_end=not text)
        for number, char in enumerate(text):
            at_end = number == len(text) - 1
            key = (now, char + "$" if at_end else char)
            self._spend(1)
            following = self._steps.get(key)
            if following is None:
                reached = [s.after for s in map(self._states.__getitem__, now) if s.test is not None and s.test(char)]
                self._spend(len(now))
                following = self._steps[key] = self._closed(reached, at_start=False, at_end=at_end)
            if not following:
                return False
            now = following
        return self._last in now

    def _closed(self, begun: list[int], *, at_start: bool, at_end: bool) -> tuple[int, ...]:
        """All states that are reached without a further character."""
        seen: dict[int, None] = {}
        waiting = list(begun)
        while waiting:
            number = waiting.pop()
            state = self._states[number]
            if number in seen or (state.at_start and not at_start) or (state.at_end and not at_end):
                continue
            seen[number] = None
            self._spend(1 + len(state.ways))
            waiting += state.ways
        return tuple(sorted(seen))

    def _spend(self, work: int) -> None:
        self.work_left -= work
        if self.work_left < 0:
            raise PatternError("this pattern costs too much to match: make it simpler")


def compile_pattern(pattern: str) -> Machine:
    """The machine for a pattern in RE2's syntax, as far as topic names need it."""
    parser = _Parser(pattern)
    first, last = parser.alternatives(0)
    if parser.at < len(pattern):
        raise PatternError(f"unexpected {pattern[parser.at]!r} at {parser.at}")
    return Machine(parser.states, first, last)


class _Parser:
    """Reads a pattern from left to right; each part becomes states from a first to a last one."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0
        self.states: list[_State] = []

    def _peek(self) -> str:
        return self._pattern[self.at] if self.at < len(self._pattern) else ""

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise PatternError("the pattern ends too early")
        self.at += 1
        return char

    def _state(self, **what: object) -> int:
        if len(self.states) >= STATES_MAX:
            raise PatternError(f"this pattern is too large: it has more than {STATES_MAX} states")
        self.states.append(_State(**what))  # type: ignore[arg-type]  # fields of a state
        return len(self.states) - 1

    def _join(self, first: int, second: int) -> None:
        self.states[first].ways.append(second)

    def alternatives(self, depth: int) -> tuple[int, int]:
        if depth > DEPTH_MAX:
            raise PatternError("groups are nested too deeply")
        first, last = self._state(), self._state()
        while True:
            begin, end = self._sequence(depth)
            self._join(first, begin)
            self._join(end, last)
            if self._peek() != "|":
                return first, last
            self.at += 1

    def _sequence(self, depth: int) -> tuple[int, int]:
        first = last = self._state()
        while self._peek() not in ("", "|", ")"):
            start = self.at
            begin, end = self._repeated(start, depth)
            self._join(last, begin)
            last = end
        return first, last

    def _repeated(self, start: int, depth: int) -> tuple[int, int]:
        begin, end = self._atom(depth)
        behind = self.at
        least, most = self._quantifier()
        if (least, most) == (1, 1):
            return begin, end
        first = last = self._state()
        for number in range(max(least, most if most is not None else least + 1, 1)):
            if number:  # the same text once more makes states of its own
                after, self.at = self.at, start
                begin, end = self._atom(depth)
                self.at = after
            self._join(last, begin)
            if number >= least:
                self._join(last, stop := self._state())
                self._join(end, stop)
                if most is None:
                    self._join(end, begin)
                end = stop
            last = end
        if most == 0:
            return first, first
        self.at = max(self.at, behind)
        return first, last

    def _quantifier(self) -> tuple[int, int | None]:
        kinds: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self._peek()
        if char in kinds and char:
            self.at += 1
            found = kinds[char]
        elif char == "{":
            found = self._braces()
        else:
            return 1, 1
        if self._peek() == "?":
            self.at += 1  # lazy or not, the same names match
        if self._peek() in ("*", "+"):
            raise PatternError(f"nothing to repeat at {self.at}")
        return found

    def _braces(self) -> tuple[int, int | None]:
        close = self._pattern.find("}", self.at)
        low, comma, high = self._pattern[self.at + 1 : max(close, self.at)].partition(",")
        if close < 0 or not low.isdigit() or (high and not high.isdigit()) or len(low) > 4 or len(high) > 4:
            raise PatternError(f"a repetition is {{n}}, {{n,}} or {{n,m}}, not what stands at {self.at}")
        self.at = close + 1
        most = int(high) if high else (None if comma else int(low))
        if int(low) > REPEATS_MAX or (most or 0) > REPEATS_MAX or (most is not None and most < int(low)):
            raise PatternError(f"a repetition of at most {REPEATS_MAX}, from less to more")
        return int(low), most

    def _atom(self, depth: int) -> tuple[int, int]:
        char = self._next()
        if char == "(":
            return self._group(depth)
        if char == "^":
            return self._single(at_start=True)
        if char == "$":
            return self._single(at_end=True)
        if char == ".":
            return self._taking(lambda c: c != "\n")
        if char == "[":
            return self._taking(self._char_class())
        if char == "\\":
            return self._escaped()
        if char in "*+?":
            raise PatternError(f"nothing to repeat at {self.at - 1}")
        return self._taking(lambda c: c == char)

    def _group(self, depth: int) -> tuple[int, int]:
        if self._peek() == "?":
            self.at += 1
            kind = self._next()
            if kind == "P" or kind == "<":
                close = self._pattern.find(">", self.at)
                if close < 0 or (kind == "<" and self._peek() in "=!"):
                    raise PatternError("this kind of group is not supported")
                self.at = close + 1
            elif kind != ":":
                raise PatternError("this kind of group is not supported")
        inner = self.alternatives(depth + 1)
        if self._peek() != ")":
            raise PatternError("a group is not closed")
        self.at += 1
        return inner

    def _single(self, *, at_start: bool = False, at_end: bool = False) -> tuple[int, int]:
        number = self._state(at_start=at_start, at_end=at_end)
        return number, number

    def _taking(self, test: Test) -> tuple[int, int]:
        end = self._state()
        return self._state(test=test, after=end), end

    def _escaped(self) -> tuple[int, int]:
        char = self._next()
        if char in "Az":
            return self._single(at_start=char == "A", at_end=char == "z")
        return self._taking(_escape(char))

    def _char_class(self) -> Test:
        negated = self._peek() == "^"
        self.at += negated
        tests: list[Test] = []
        begin = self.at
        while self._peek() != "]" or self.at == begin:
            tests.append(self._class_item())
        self.at += 1
        return (lambda c: not any(test(c) for test in tests)) if negated else (lambda c: any(test(c) for test in tests))

    def _class_item(self) -> Test:
        char = self._next()
        if char == "\\":
            escaped = self._next()
            if escaped.lower() in _CLASSES:
                return _escape(escaped)
            char = escaped
        if self._peek() == "-" and self._pattern[self.at + 1 : self.at + 2] not in ("", "]"):
            self.at += 1
            last = self._next()
            last = self._next() if last == "\\" else last
            if last < char:
                raise PatternError(f"the range {char}-{last} is empty")
            return lambda c: char <= c <= last
        return lambda c: c == char


def _escape(char: str) -> Test:
    if char.lower() in _CLASSES:
        test = _CLASSES[char.lower()]
        return (lambda c: not test(c)) if char.isupper() else test
    if char.isalnum():
        raise PatternError(f"\\{char} is not supported")
    return lambda c: c == char
