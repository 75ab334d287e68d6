"""One partition at work: who waits for its records to become durable."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from penstock.errors import ErrorCode, StorageError
from penstock.queue.core.waiting_request import WaitingRead
from penstock.queue.log.log import Log
from penstock.queue.log.point import Point

DAMAGES_MAX = 100  # places of one partition are remembered and told: a disk with more has lost more than records
_NONE = ErrorCode.NONE
Shown = tuple[int, int]  # bytes for all readers, bytes for readers of what is committed


class Waiter(Protocol):
    """Somebody who waits for records to become durable."""

    def done(self, code: ErrorCode) -> None: ...


class Partition:
    """A log with its waiting acknowledgements and fetches."""

    __slots__ = (
        "_damaged", "_stable", "_staged", "_waiting", "announced", "counted", "fetches", "is_own", "log", "name",
    )  # fmt: skip

    def __init__(self, name: str, log: Log, *, is_own: bool = False) -> None:
        self.name = name
        self.log = log
        self.is_own = is_own  # the node writes it for itself
        self._staged: list[tuple[int, Waiter]] = []
        self._waiting: deque[tuple[int, Waiter]] = deque()
        self.fetches: dict[WaitingRead, None] = {}
        self.counted = (log.batches_written, log.written.offset, log.bytes_written)
        self.announced = log.visible  # up to where waiting fetches have been told
        self._stable = log.stable
        self._damaged: dict[int, None] = {}

    @property
    def damaged(self) -> list[int]:
        """Offsets at which damage was met, and that are still there."""
        return sorted(offset for offset in self._damaged if offset >= self.log.start_offset)

    def meet_damage(self, offset: int) -> bool:
        """True the first time: whoever reads there asks again and again."""
        if offset in self._damaged:
            return False
        if len(self._damaged) >= DAMAGES_MAX:
            self._damaged = dict.fromkeys(self.damaged)  # retention may have made room
        if len(self._damaged) >= DAMAGES_MAX:
            return False
        self._damaged[offset] = None
        return True

    def when_durable(self, waiter: Waiter) -> None:
        """Tell `waiter` once all that is staged by now can be seen by readers, or has failed."""
        self._staged.append((self.log.next_offset, waiter))

    def flush(self) -> str | None:
        """Write what is staged; on failure its waiters are told, and the reason is returned."""
        try:
            self.log.flush()
        except StorageError as error:
            self.fail_staged()
            return str(error)
        self._waiting.extend(self._staged)
        self._staged.clear()
        self._release()
        return None

    def fail_staged(self) -> None:
        """The group being written failed; what was written before still waits for its sync, if one can come."""
        staged, self._staged = self._staged, []
        written = self.log.written.offset
        for offset, waiter in staged:
            # A group is written in two when a segment is full: the first part may be fine.
            if offset <= written:
                self._waiting.append((offset, waiter))
            else:
                waiter.done(ErrorCode.KAFKA_STORAGE_ERROR)
        if self.log.stopped is not None:
            visible = self.log.visible.offset
            waiting, self._waiting = self._waiting, deque()
            for offset, waiter in waiting:
                waiter.done(_NONE if offset <= visible else ErrorCode.KAFKA_STORAGE_ERROR)

    def on_synced(self) -> None:
        self.log.end_sync()
        self._release()

    def on_sync_failed(self, reason: str) -> None:
        """Nobody knows what is on disk now: fail every waiter, stop for good."""
        self.log.stop(reason)
        self.fail_staged()

    def take_written(self) -> tuple[int, int, int]:
        """Batches, offsets and bytes written since the last call."""
        before = self.counted
        self.counted = now = (self.log.batches_written, self.log.written.offset, self.log.bytes_written)
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]

    def announce(self) -> Shown:
        """How many bytes became visible since the last call, and how many for readers of what is committed."""
        old, new = self.announced, self.log.visible
        old_stable, stable = self._stable, self.log.stable
        self.announced, self._stable = new, stable
        size = self._between(old, new)
        if old_stable is old and stable is new:
            return size, size
        return size, self._between(old_stable, stable)

    def _between(self, old: Point, new: Point) -> int:
        if old.segment is new.segment:
            return new.position - old.position
        first, last = old.segment.base_offset, new.segment.base_offset
        between = sum(segment.end for segment in self.log.segments if first < segment.base_offset < last)
        return old.segment.end - old.position + between + new.position

    def _release(self) -> None:
        visible = self.log.visible.offset
        # Looked at anew each time: whoever is told may stop this partition, and then all that wait are told.
        while self._waiting and self._waiting[0][0] <= visible:
            self._waiting.popleft()[1].done(_NONE)
