"""When a child that ended is started again: at once, then ever later, until it has lived for a while."""

from __future__ import annotations

FIRST_MS, LONGEST_MS = 100, 10_000
CALM_MS = 30_000  # a child that lived this long had a reason of its own to end


class Restarts:
    """One child's delays; time is told, not asked for."""

    def __init__(self) -> None:
        self._delay_ms = FIRST_MS

    def next_delay_ms(self, lived_ms: int) -> int:
        """How long to wait before the next start of a child that lived for `lived_ms`."""
        if lived_ms >= CALM_MS:
            self._delay_ms = FIRST_MS
        delay_ms, self._delay_ms = self._delay_ms, min(self._delay_ms * 2, LONGEST_MS)
        return delay_ms
