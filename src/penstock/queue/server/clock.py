"""One steady clock: the time of day at the start, then only forward, never by more than time really passed."""

from __future__ import annotations

import time


class SteadyClock:
    """Epoch milliseconds that follow the monotonic clock, so that a jump of the wall clock expires nothing."""

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._offset_ns

    def now_ms(self) -> int:
        return self.now_ns() // 1_000_000
