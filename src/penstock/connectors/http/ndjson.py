"""Cuts a stream of bytes into lines, within bounds; and what a sender of lines hears in the end. Pure."""

from __future__ import annotations

import msgspec

from penstock.connect.not_stored import BAD_REQUEST, common_status
from penstock.connect.problem import problem
from penstock.connect.responses import FAULTS_MAX, Answer, retry_after

Line = tuple[int, bytes | None]


class Lines:
    """Chunks in, whole lines with their numbers out, from 1; None for a line that is too long to be kept."""

    def __init__(self, line_bytes_max: int) -> None:
        self._line_bytes_max = line_bytes_max
        self._number = 0
        self._rest = b""
        self._is_skipping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in `chunk`; blank ones are counted, not given."""
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._keep(chunk)
            return []
        lines: list[bytes | None] = [*whole.split(b"\n")]
        first = [] if not self._rest and not self._is_skipping else self._whole(self._rest + (lines.pop(0) or b""))
        limit, number = self._line_bytes_max + 1, self._number
        self._number += len(lines)
        self._rest = b""
        self._keep(rest)
        if len(whole) > limit or b"\r" in whole:
            lines = [None if line is None or len(line) > limit else _without_return(line) for line in lines]
        return [*first, *[pair for pair in enumerate(lines, number + 1) if pair[1] is None or not _is_blank(pair[1])]]

    def end(self) -> list[Line]:
        """The last line, if it does not end with a newline."""
        return self._whole(self._rest) if self._rest or self._is_skipping else []

    def _whole(self, line: bytes) -> list[Line]:
        self._number += 1
        if self._is_skipping or len(line) > self._line_bytes_max + 1:
            self._is_skipping = False
            return [(self._number, None)]
        return [] if _is_blank(line) else [(self._number, _without_return(line))]

    def _keep(self, part: bytes) -> None:
        if self._is_skipping or len(self._rest) + len(part) > self._line_bytes_max + 1:
            self._rest, self._is_skipping = b"", True
        else:
            self._rest += part


class Pace:
    """Whether a stream comes on well enough: a whole line and `bytes_min` in each deadline, which then begins anew."""

    def __init__(self, bytes_min: int) -> None:
        self._bytes_min = bytes_min
        self._bytes = 0
        self._lines = 0

    def on_chunk(self, size: int, lines: int) -> bool:
        """True when enough has come for another deadline."""
        self._bytes += size
        self._lines += lines
        if self._bytes < self._bytes_min or not self._lines:
            return False
        self._bytes = self._lines = 0
        return True


def _without_return(line: bytes) -> bytes:
    return line[:-1] if line.endswith(b"\r") else line


def _is_blank(line: bytes) -> bool:
    return not line or line.isspace()


class Tally:
    """What became of the lines of one request."""

    def __init__(self) -> None:
        self.accepted = 0
        self.refused = 0
        self.unstored = 0
        self._faults: list[dict[str, object]] = []
        self._statuses: set[int] = set()

    def refuse(self, line: int, reason: str, status: int = BAD_REQUEST) -> None:
        """This line is not stored, and would be refused again; `status` is the answer to it alone."""
        self.refused += 1
        self._statuses.add(status)
        self._tell(line, reason, retry=False)

    def miss(self, line: int, reason: str) -> None:
        """This line was not acknowledged: it may or may not be stored."""
        self.unstored += 1
        self._tell(line, f"not acknowledged: {reason}", retry=True)

    def _tell(self, line: int, reason: str, *, retry: bool) -> None:
        if len(self._faults) < FAULTS_MAX:
            self._faults.append({"line": line, "error": reason, "retry": retry})

    def answer(self, cut: str = "") -> Answer:
        """202 all stored, 207 some refused, 4xx all refused, 503 some not stored; `cut`: why not all was read (408)."""
        body = {
            "accepted": self.accepted,
            "refused": self.refused,
            "unstored": self.unstored,
            "faults": self._faults,
            "faults_left_off": self.refused + self.unstored - len(self._faults),
        }
        headers = ((b"connection", b"close"),) if cut else ()
        if self.unstored:
            error = "the queue did not acknowledge all lines in time: send them again"
            return Answer(503, problem(503, error, **body), (*headers, retry_after()))
        if cut:
            return Answer(408, problem(408, cut, **body), headers)
        if not self.accepted:
            status = common_status(self._statuses or {BAD_REQUEST})
            error = "no line is an event that this topic takes" if self.refused else "there was no event"
            return Answer(status, problem(status, error, **body))
        return Answer(207 if self.refused else 202, msgspec.json.encode(body))
