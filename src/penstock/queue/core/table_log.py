"""A log of changes of one table: many in one sync, true once they are durable; compacted while it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, StorageError
from penstock.kafka.records.record import encode_values
from penstock.ports import Disk
from penstock.queue.core.log_values import read_values
from penstock.queue.core.partition import Partition
from penstock.queue.log.recovery import open_log

COMPACT_BYTES = 4 * 1024 * 1024  # written since the last snapshot, and twice as much as that took
_KEEP_FOR_EVER = TopicConfig(retention_ms=-1, segment_bytes=16 * 1024 * 1024, segment_ms=2**62)

Finish = Callable[[ErrorCode], None]


class Table(Protocol):
    """What is durable; only replay_ changes it, live and after a restart."""

    def replay_(self, change: Any) -> None: ...

    def snapshot(self) -> Iterable[Any]: ...


T = TypeVar("T", bound=Table)
C = TypeVar("C")


class TableLog(Generic[T, C]):
    """`partition` is flushed and synced by the node like any other."""

    def __init__(
        self,
        partition: Partition,
        table: T,
        encode: Callable[[C], bytes],
        dirty: dict[Partition, None],
        advance: Callable[[Partition, int], None],
    ) -> None:
        """`advance` moves the start of the log, once a snapshot holds all that was before it."""
        self.partition = partition
        self._dirty = dirty
        self._advance = advance
        self.table = table
        self._encode = encode
        self._pending = 0  # writes that are neither durable nor failed
        self._queue: deque[tuple[list[C], Finish, int]] = deque()  # in order, whoever writes while others are told
        self._snapshot_bytes = 0
        # What an earlier run left counts, too, so that a log never grows from start to start.
        self._compacted_at = -sum(segment.end for segment in partition.log.segments)

    def write(self, changes: list[C], finish: Finish, now_ms: int) -> None:
        """Append changes as one; `finish` is told when they are durable and true, or have failed."""
        self._queue.append((changes, finish, now_ms))
        self._drain()

    def _drain(self) -> None:
        while self._queue:
            if self._wants_snapshot:
                if self._pending:
                    return  # a snapshot holds what is durable: it goes in when nothing else is under way
                self._compact(self._queue[0][2])
            self._append(*self._queue.popleft())

    def _append(self, changes: list[C], finish: Finish, now_ms: int) -> None:
        values = [self._encode(change) for change in changes]
        log = self.partition.log
        try:
            if log.stopped is not None:
                raise StorageError(log.stopped)
            log.append(encode_values(values, now_ms), len(values) - 1, now_ms, now_ms)
        except StorageError:
            self.partition.fail_staged()
            finish(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self._pending += 1
        self.partition.when_durable(_Written(self, changes, finish))
        self._dirty[self.partition] = None

    def written(self, changes: list[C], finish: Finish, code: ErrorCode) -> None:
        """Changes are durable, and so true; or they failed."""
        self._pending -= 1
        if code is ErrorCode.NONE:
            for change in changes:
                self.table.replay_(change)
        finish(code and ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._drain()

    @property
    def _wants_snapshot(self) -> bool:
        log = self.partition.log
        return log.stopped is None and (
            log.bytes_written + log.staged_bytes - self._compacted_at > max(COMPACT_BYTES, 2 * self._snapshot_bytes)
        )

    def _compact(self, now_ms: int) -> None:
        """Begin a segment with all that is true; the others go once it is durable."""
        log = self.partition.log
        self._compacted_at = log.bytes_written
        try:
            log.roll()
        except StorageError:
            return  # no room: it is tried again after as much as now
        snapshot = list(self.table.snapshot())
        start = log.active.base_offset

        def finish(code: ErrorCode) -> None:
            if not code:
                self._snapshot_bytes = log.bytes_written - before
                self._advance(self.partition, start)

        before = log.bytes_written
        self._append(snapshot, finish, now_ms)


class _Written(NamedTuple):
    """Waits for changes to become durable."""

    journal: TableLog[Any, Any]
    changes: list[Any]
    finish: Finish

    def done(self, code: ErrorCode) -> None:
        self.journal.written(self.changes, self.finish, code)


def open_journal(
    disk: Disk,
    folder: str,
    table: T,
    encode: Callable[[C], bytes],
    decode: Callable[[bytes], C],
    config: BrokerConfig,
    now_ms: int,
    dirty: dict[Partition, None],
    advance: Callable[[Partition, int], None],
) -> TableLog[T, C]:
    """The log in `folder`, replayed into `table`. StorageError if it is damaged."""
    disk.make_folder(folder)
    disk.sync_folder("")
    log = open_log(disk, folder, _KEEP_FOR_EVER, config, now_ms)
    for value in read_values(log, f"log of {folder}"):
        table.replay_(decode(value))
    return TableLog(Partition(folder, log, is_own=True), table, encode, dirty, advance)
