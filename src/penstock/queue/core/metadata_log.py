"""The metadata log: changes of the catalog, one at a time, true only once they are durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.errors import ErrorCode, StorageError
from penstock.kafka.records.record import encode_values
from penstock.ports import Disk
from penstock.queue.core.catalog import Catalog
from penstock.queue.core.catalog_changes import Change, ClusterNamed, decode_change, encode_change
from penstock.queue.core.log_values import read_values
from penstock.queue.core.partition import Partition
from penstock.queue.core.partitions import Store
from penstock.queue.log.layout import META_FOLDER, TOPICS_FOLDER
from penstock.queue.log.log import Log
from penstock.queue.log.recovery import open_log
from penstock.queue.log.small_file import save_file

SPARE = f"{META_FOLDER}/spare"
SPARE_BYTES = 256 * 1024  # lets topics be deleted on a full disk
_COMPACT_AFTER = 1_000
_KEEP_FOR_EVER = TopicConfig(retention_ms=-1, segment_bytes=16 * 1024 * 1024, segment_ms=2**62)

Plan = Callable[[], list[Change]]
Finish = Callable[[ErrorCode], None]


class Pending(NamedTuple):
    """A change that waits for its turn."""

    plan: Plan
    finish: Finish


class CatalogWatcher(Protocol):
    """Receives changes of the catalog after they are applied."""

    def on_changed(self, change: Change) -> None: ...

    def on_gone(self, partition: Partition) -> None:
        """The topic of an open partition was deleted."""


class MetaLog:
    """`partition` is flushed and synced by the node like any other."""

    def __init__(
        self,
        partition: Partition,
        store: Store,
        catalog: Catalog,
        waiting_max: int,
        dirty: dict[Partition, None],
        watcher: CatalogWatcher,
    ) -> None:
        self.partition = partition
        self._dirty = dirty
        self._watcher = watcher
        self._store = store
        self._catalog = catalog
        self._waiting: deque[Pending] = deque()
        self._waiting_max = waiting_max
        self._is_busy = False

    def submit(self, plan: Plan, finish: Finish, now_ms: int) -> bool:
        """Plan and write a change when it is its turn; False if too many wait already."""
        if len(self._waiting) >= self._waiting_max:
            return False
        self._waiting.append(Pending(plan, finish))
        self.run(now_ms)
        self._dirty[self.partition] = None
        return True

    def run(self, now_ms: int) -> None:
        """Start the next change if none is being written."""
        while self._waiting and not self._is_busy:
            plan, finish = self._waiting.popleft()
            changes = plan()
            if not changes:
                finish(ErrorCode.NONE)
                continue
            try:
                for change in changes:
                    self._store.prepare(change)
                self._append(changes, now_ms)
            except (OSError, StorageError):
                finish(ErrorCode.KAFKA_STORAGE_ERROR)
                continue
            self._is_busy = True
            self.partition.when_durable(_Written(self, changes, finish))

    def _append(self, changes: list[Change], now_ms: int) -> None:
        log = self.partition.log
        batch = encode_values([encode_change(change) for change in changes], now_ms)
        if log.stopped is not None:
            raise StorageError(log.stopped)
        log.append(batch, len(changes) - 1, now_ms, now_ms)
        try:
            log.flush()
        except StorageError:
            if log.stopped is not None or not self._store.disk.exists(SPARE):
                raise
            self._store.disk.remove(SPARE)
            batch = encode_values([encode_change(change) for change in changes], now_ms)
            log.append(batch, len(changes) - 1, now_ms, now_ms)
            log.flush()

    def written(self, changes: list[Change], finish: Finish, code: ErrorCode) -> None:
        """Changes are durable, and so true; or they failed."""
        self._is_busy = False
        if code is ErrorCode.NONE:
            for change in changes:
                self._catalog.replay_(change)
                for gone in self._store.apply(change):
                    self._watcher.on_gone(gone)
                self._watcher.on_changed(change)
            keep_spare(self._store.disk)
        finish(code)

    @property
    def wants_to_run(self) -> bool:
        return bool(self._waiting) and not self._is_busy


class _Written(NamedTuple):
    """Waits for changes to become durable."""

    meta: MetaLog
    changes: list[Change]
    finish: Finish

    def done(self, code: ErrorCode) -> None:
        self.meta.written(self.changes, self.finish, code)


def open_metalog(
    disk: Disk,
    config: BrokerConfig,
    store: Store,
    catalog: Catalog,
    name: str,
    now_ms: int,
    *,
    dirty: dict[Partition, None],
    watcher: CatalogWatcher,
) -> MetaLog:
    """The metadata log, replayed into `catalog`; a new one names the cluster. StorageError if it is damaged."""
    disk.make_folder(META_FOLDER)
    disk.make_folder(TOPICS_FOLDER)
    disk.sync_folder("")
    log = open_log(disk, META_FOLDER, _KEEP_FOR_EVER, config, now_ms)
    replayed = 0
    for value in read_values(log, "metadata log"):
        catalog.replay_(decode_change(value))
        replayed += 1
    if not catalog.cluster_id:
        _write_now(log, [ClusterNamed(name)], now_ms)
        catalog.replay_(ClusterNamed(name))
    snapshot = list(catalog.snapshot())
    if replayed > _COMPACT_AFTER + 2 * len(snapshot):
        log.roll()
        _write_now(log, snapshot, now_ms)
        log.advance_start(log.active.base_offset)
    keep_spare(disk)
    own = Partition("metadata", log, is_own=True)
    return MetaLog(own, store, catalog, config.metadata_queue_max, dirty, watcher)


def _write_now(log: Log, changes: list[Change], now_ms: int) -> None:
    batch = encode_values([encode_change(change) for change in changes], now_ms)
    log.append(batch, len(changes) - 1, now_ms, now_ms)
    log.flush()
    files, folders = log.begin_sync()
    for file in files:
        file.sync()
    for folder in folders:
        log.disk.sync_folder(folder)
    log.end_sync()


def keep_spare(disk: Disk) -> None:
    """Set a little space aside, so that topics can be deleted when the disk is full."""
    try:
        if not disk.exists(SPARE):
            save_file(disk, SPARE, bytes(SPARE_BYTES))
    except OSError:
        with suppress(OSError):
            disk.remove(SPARE)
