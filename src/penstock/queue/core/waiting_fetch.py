"""Fetches that wait: until there is enough to read, until the disk has brought it, or until their time is over."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from penstock.errors import ErrorCode
from penstock.kafka.wire.fetch import FetchCall
from penstock.kafka.wire.header import RequestHeader
from penstock.queue.core.connection import Slot
from penstock.queue.core.events import Load, Part
from penstock.queue.core.partition import Partition
from penstock.queue.core.waiting_request import WaitingRead
from penstock.queue.log.log import Log

PRUNE_FROM = 1_000


class WaitingFetch(WaitingRead):
    """A fetch that has not enough yet; `missing` bytes would make it enough."""

    __slots__ = (
        "call",
        "deadline_ms",
        "disk",
        "header",
        "is_done",
        "loads",
        "missing",
        "partitions",
        "refused",
        "slot",
        "timers",
    )

    def __init__(
        self, slot: Slot, header: RequestHeader, call: FetchCall, deadline_ms: int, timers: Timers, disk: Loads
    ) -> None:
        self.slot = slot
        self.header = header
        self.call = call
        self.deadline_ms = deadline_ms
        self.timers = timers
        self.disk = disk
        self.loads: dict[Log, int] = {}  # how often the disk was asked for each
        self.refused: dict[Log, ErrorCode] = {}  # what cannot be read is found out once
        self.missing = 0
        self.is_done = False
        self.partitions: list[Partition] = []

    def on_visible(self, visible: int, stable: int) -> None:
        self.missing -= stable if self.call.is_committed else visible
        if self.missing <= 0:
            self.timers.ready.append(self)

    def on_deleted(self) -> None:
        """It is answered in this step."""
        self.missing = 0
        self.timers.add(0, self)

    def abandon(self) -> None:
        self.disk.forget(self)
        self.leave()

    def leave(self) -> None:
        """It is answered, or its client is gone: neither its partitions nor its connection hold it."""
        self.is_done = True
        for partition in self.partitions:
            partition.fetches.pop(self, None)
        self.partitions.clear()
        self.slot.connection.fetches.pop(self, None)


class Timers:
    """A heap of deadlines; fetches answered before their time are taken out now and then."""

    def __init__(self) -> None:
        self.ready: list[WaitingFetch] = []  # enough has come for them
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

    def take_ready(self) -> list[WaitingFetch]:
        """Those for which enough has come, before their time."""
        ready, self.ready = self.ready, []
        return ready

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
