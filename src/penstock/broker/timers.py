"""When waiting fetches must be answered, whether there is enough for them or not."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.broker.fetch import WaitingFetch

PRUNE_FROM = 1_000


class Timers:
    """A heap of deadlines; fetches answered before their time are taken out now and then."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, WaitingFetch]] = []
        self._count = 0
        self._prune_at = PRUNE_FROM

    def add(self, deadline_ms: int, waiting: WaitingFetch) -> None:
        self._count += 1
        heapq.heappush(self._heap, (deadline_ms, self._count, waiting))
        if len(self._heap) > self._prune_at:
            self._heap = [entry for entry in self._heap if not entry[2].is_done]
            heapq.heapify(self._heap)
            self._prune_at = 2 * len(self._heap) + PRUNE_FROM

    def due(self, now_ms: int) -> Iterator[WaitingFetch]:
        """Those whose time has come, once each."""
        while self._heap and self._heap[0][0] <= now_ms:
            yield heapq.heappop(self._heap)[2]

    @property
    def next_ms(self) -> int | None:
        """The next deadline of somebody who still waits."""
        while self._heap and self._heap[0][2].is_done:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
