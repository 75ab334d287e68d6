"""Log lines about connections closed or refused: some of each kind in a second, then how many more there were."""

from __future__ import annotations

import re
from collections.abc import Callable

from penstock.process.log_lines import log_line

LINES_EACH = 5  # of one kind in a second: enough to see who it is
KINDS_MAX = 100  # in a second; what differs in its numbers only is of one kind
WINDOW_MS = 1000
_NUMBER = re.compile(r"\d+")


class Kind:
    """What is alike within a second."""

    __slots__ = ("event", "left_out", "level", "reason", "told")

    def __init__(self, level: str, event: str) -> None:
        self.level = level
        self.event = event
        self.reason = ""  # the latest, as it was
        self.told = 0
        self.left_out = 0


class CloseLog:
    """Tells of each kind at once, and of none so often that it keeps the broker from its clients."""

    def __init__(self, write: Callable[..., None] = log_line) -> None:
        self._write = write
        self._kinds: dict[str, Kind] = {}
        self._until_ms = 0

    def tell(self, level: str, event: str, reason: str, now_ms: int, **details: object) -> None:
        """A line, unless there were enough of its kind in this second: then it is counted."""
        self.settle(now_ms)
        kind = self._kind(level, event, reason)
        kind.reason = reason
        if kind.told < LINES_EACH:
            kind.told += 1
            self._write(level, event, **details, reason=reason)
        else:
            kind.left_out += 1

    def _kind(self, level: str, event: str, reason: str) -> Kind:
        name = f"{event} {_NUMBER.sub('#', reason)}"
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) >= KINDS_MAX:
                name = event  # whatever else there is counts as one kind
            kind = self._kinds.setdefault(name, Kind(level, event))
        return kind

    def settle(self, now_ms: int) -> None:
        """At the end of a second say how many lines were left out."""
        if now_ms >= self._until_ms:
            self.flush()
            self._until_ms = now_ms + WINDOW_MS

    def flush(self) -> None:
        """Say how many lines were left out, however short the time was."""
        for kind in self._kinds.values():
            if kind.left_out:
                self._write(kind.level, f"{kind.event}, and more like it", count=kind.left_out, reason=kind.reason)
        self._kinds.clear()

    @property
    def is_holding(self) -> bool:
        """Whether something is still to be told."""
        return any(kind.left_out for kind in self._kinds.values())
