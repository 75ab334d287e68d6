"""Subscriptions by regular expression: RE2's safety, no backtracking, and every cost is bounded.

A pattern is parsed by hand into a machine whose states are all followed at once, and what was found out is remembered,
so that a character costs one look-up once a pattern is warm. Size of the pattern, of the machine and the work for all
names together are limited: whoever asks for more is refused, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.queue.groups.consumer.regex import Machine, PatternError, compile_pattern

PATTERN_CHARS_MAX = 1_000
WORK_PER_CHAR = 50  # states followed for each character of all names together
WORK_FREE = 100_000
REMEMBERED_MAX = 20  # patterns with what was found out about each name


class _Known:
    """A pattern, and which names it matches."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.version = -1
        self.verdicts: dict[str, bool] = {}
        self.found: tuple[str, ...] = ()


class Patterns:
    """What each pattern matches; a name is looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def matching(self, pattern: str, names: Iterable[str], version: int) -> tuple[str, ...]:
        """The names that `pattern` matches from end to end; PatternError if it is none, or costs too much.

        `version` changes with the names.
        """
        known = self._known.get(pattern)
        if known is None:
            known = _Known(_compiled(pattern))
        if known.version != version:
            known.verdicts = _judged(known, list(names))
            known.found = tuple(name for name, fits in known.verdicts.items() if fits)
            known.version = version
            self._known[pattern] = known
            if len(self._known) > REMEMBERED_MAX:
                del self._known[next(iter(self._known))]
        return known.found


def _compiled(pattern: str) -> Machine:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise PatternError(f"a pattern has at most {PATTERN_CHARS_MAX} characters, this one has {len(pattern)}")
    return compile_pattern(pattern)


def _judged(known: _Known, names: list[str]) -> dict[str, bool]:
    before, machine = known.verdicts, known.machine
    machine.work_left = WORK_FREE + WORK_PER_CHAR * sum(len(name) for name in names if name not in before)
    return {name: before[name] if name in before else machine.matches(name) for name in names}
