"""Fetches that wait: until there is enough to read, until the disk has brought it, or until their time is over."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from penstock.broker.connection import Slot
from penstock.broker.events import Load, Part
from penstock.broker.partition import Partition
from penstock.broker.waiting_request import WaitingRequest
from penstock.errors import ErrorCode
from penstock.log.log import Log
from penstock.wire.fetch import FetchCall
from penstock.wire.header import RequestHeader

PRUNE_FROM = 1_000


class WaitingFetch(WaitingRequest):
    """A fetch that has not enough yet; `missing` bytes would make it enough."""

    __slots__ = ("call", "deadline_ms", "header", "is_done", "loads", "missing", "partitions", "refused", "slot")

    def __init__(self, slot: Slot, header: RequestHeader, call: FetchCall, deadline_ms: int) -> None:
        self.slot = slot
        self.header = header
        self.call = call
        self.deadline_ms = deadline_ms
        self.loads: dict[Log, int] = {}  # how often the disk was asked for each
        self.refused: dict[Log, ErrorCode] = {}  # what cannot be read is found out once
        self.missing = 0
        self.is_done = False
        self.partitions: list[Partition] = []


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
        """The next deadline of a fetch that still waits."""
        while self._heap and self._heap[0][2].is_done:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


class Loads:
    """Which fetch waits for which job. A few are under way at once; the others wait in the order they came."""

    def __init__(self, under_way_max: int) -> None:
        self._under_way_max = under_way_max
        self.under_way: dict[int, WaitingFetch] = {}
        self.put_off: dict[WaitingFetch, list[Part]] = {}
        self._last = 0

    def want(self, waiting: WaitingFetch, parts: list[Part]) -> None:
        """Let a fetch wait for these parts."""
        self.put_off[waiting] = parts

    def take(self) -> list[Load]:
        """What to begin now."""
        begun = []
        while self.put_off and len(self.under_way) < self._under_way_max:
            waiting = next(iter(self.put_off))
            self._last += 1
            self.under_way[self._last] = waiting
            begun.append(Load(self._last, self.put_off.pop(waiting)))
        return begun

    def forget(self, waiting: WaitingFetch) -> None:
        """The client is gone: a load that has not begun never begins."""
        self.put_off.pop(waiting, None)

    def end(self, job: int) -> WaitingFetch:
        """The fetch that waited for a job that has ended."""
        return self.under_way.pop(job)
