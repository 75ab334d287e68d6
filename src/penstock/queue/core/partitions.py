"""The partitions of this node on disk: opened when first used, removed with their topic, trimmed by retention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode, StorageError, SyncFailedError
from penstock.ports import Disk
from penstock.queue.core.catalog import Catalog, Topic
from penstock.queue.core.catalog_changes import (
    Change,
    PartitionsAdded,
    StartMoved,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
)
from penstock.queue.core.partition import Partition
from penstock.queue.log.layout import LOG, TOPICS_FOLDER, base_offsets, partition_folder, topic_folder
from penstock.queue.log.recovery import open_log
from penstock.queue.log.retention import plan_start, should_roll

_NEVER_MS = 2**62
REOPEN_MS = 1_000
TRIM_AT_ONCE = 200  # partitions a step: opening them all at once would stall every client


class _Failed(NamedTuple):
    """A partition that could not be opened, and when to try again."""

    name: str
    reason: str
    again_ms: int


class StoreWatcher(Protocol):
    """Receives the opening of partitions, and their storage errors."""

    def on_opened(self, partition: Partition, topic: Topic, index: int, now_ms: int) -> None: ...

    def on_storage_error(self, event: str, name: str, reason: str) -> None: ...


class Store:
    """Partitions by (topic id, index)."""

    def __init__(self, disk: Disk, config: BrokerConfig, catalog: Catalog, watcher: StoreWatcher) -> None:
        self._watcher = watcher
        self.disk = disk
        self.config = config
        self.catalog = catalog
        self.open: dict[tuple[bytes, int], Partition] = {}
        self._failed: dict[tuple[bytes, int], _Failed] = {}
        self._untrimmed: list[tuple[Topic, int]] = []

    def get(self, topic: Topic, index: int, now_ms: int) -> Partition | StorageError | None:
        """The partition, opened if need be; None if the topic has none of this number."""
        if not 0 <= index < topic.partitions:
            return None
        key = (topic.raw_id, index)
        name = f"{topic.name}-{index}"
        failed = self._failed.get(key)
        if failed is not None and now_ms < failed.again_ms:
            return StorageError(failed.reason)
        try:
            log = open_log(self.disk, partition_folder(topic.topic_id, index), topic.config, self.config, now_ms)
        except StorageError as error:
            # A failed sync is never tried again; for the rest, once in a while: a full disk may have room again.
            again_ms = _NEVER_MS if isinstance(error, SyncFailedError) else now_ms + REOPEN_MS
            self._failed[key] = _Failed(name, str(error), again_ms)
            if failed is None or failed.reason != str(error):  # clients ask again and again
                self._watcher.on_storage_error("partition cannot be opened", name, str(error))
            return error
        self._failed.pop(key, None)
        partition = Partition(name, log)
        self.advance(partition, topic.starts.get(index, 0))
        self.open[key] = partition
        self._watcher.on_opened(partition, topic, index, now_ms)
        return partition

    @property
    def failed(self) -> dict[str, str]:
        """Partitions that cannot be opened, and why."""
        return {failed.name: failed.reason for failed in self._failed.values()}

    def advance(self, partition: Partition, offset: int) -> None:
        """Move the start of a log; what cannot be removed now goes with the next retention."""
        try:
            partition.log.advance_start(offset)
        except SyncFailedError as error:
            partition.on_sync_failed(str(error))
            self._watcher.on_storage_error("sync failed, partition stopped", partition.name, str(error))
        except OSError as error:
            self._watcher.on_storage_error("old records could not be removed", partition.name, str(error))

    def prepare(self, change: Change) -> None:
        """Make the folders a change needs, durably, before the change itself is written. OSError if that fails."""
        match change:
            case TopicCreated(topic_id=topic_id, partitions=partitions):
                self.disk.make_folder(topic_folder(topic_id))
                self._make_partitions(topic_id, 0, partitions)
                self.disk.sync_folder(TOPICS_FOLDER)
            case PartitionsAdded(topic_id=topic_id, partitions=partitions):
                topic = self.catalog.by_id(topic_id)
                self._make_partitions(topic_id, topic.partitions if topic else 0, partitions)

    def _make_partitions(self, topic_id: UUID, first: int, count: int) -> None:
        for index in range(first, count):
            self.disk.make_folder(partition_folder(topic_id, index))
        self.disk.sync_folder(topic_folder(topic_id))

    def apply(self, change: Change) -> list[Partition]:
        """Follow a change the catalog has taken in; returns the partitions that are gone."""
        match change:
            case TopicDeleted(topic_id=topic_id):
                gone = [self.open.pop(key) for key in list(self.open) if key[0] == topic_id.bytes]
                self._failed = {key: why for key, why in self._failed.items() if key[0] != topic_id.bytes}
                for partition in gone:
                    partition.log.discard()
                with suppress(OSError):  # the next start removes what is left
                    self.disk.remove_folder(topic_folder(topic_id))
                return gone
            case TopicConfigured(topic_id=topic_id):
                topic = self.catalog.by_id(topic_id)
                for (raw_id, _), partition in self.open.items():
                    if topic is not None and raw_id == topic.raw_id:
                        partition.log.config = topic.config
            case StartMoved(topic_id=topic_id, partition=index, offset=offset):
                moved = self.open.get((topic_id.bytes, index))
                if moved is not None:
                    self.advance(moved, offset)
        return []

    def remove_orphans(self) -> list[str]:
        """Remove folders of topics that were deleted, or never came to be; returns those that hold data."""
        kept = []
        for name in self.disk.names(TOPICS_FOLDER):
            try:
                topic_id = UUID(name)
            except ValueError:
                continue
            if self.catalog.by_id(topic_id) is None:
                if topic_id in self.catalog.deleted or not self._holds_data(topic_id):
                    self.disk.remove_folder(topic_folder(topic_id))
                else:
                    kept.append(name)
        return kept

    def _holds_data(self, topic_id: UUID) -> bool:
        folder = topic_folder(topic_id)
        return any(base_offsets(self.disk.names(f"{folder}/{index}"), LOG) for index in self.disk.names(folder))

    def trim(self, now_ms: int) -> bool:
        """Apply retention to the next few partitions; True when all have had their turn."""
        if not self._untrimmed:
            self._untrimmed = list(self._all_partitions())
        some, self._untrimmed = self._untrimmed[-TRIM_AT_ONCE:], self._untrimmed[:-TRIM_AT_ONCE]
        for topic, index in some:
            if topic is self.catalog.topics.get(topic.name):
                self._trim_one(topic, index, now_ms)
        return not self._untrimmed

    def _trim_one(self, topic: Topic, index: int, now_ms: int) -> None:
        partition = self.open.get((topic.raw_id, index)) or self._open_if_written(topic, index, now_ms)
        if partition is None or partition.log.stopped is not None:
            return
        log = partition.log
        try:
            if should_roll(log, now_ms):
                log.start_afresh()
        except SyncFailedError as error:
            partition.on_sync_failed(str(error))
            self._watcher.on_storage_error("sync failed, partition stopped", partition.name, str(error))
            return
        except StorageError as error:
            self._watcher.on_storage_error("old records could not be removed", partition.name, str(error))
            return
        self.advance(partition, plan_start(log, now_ms))
        log.producers.expire(now_ms - self.config.producer_expiry_ms)

    def _open_if_written(self, topic: Topic, index: int, now_ms: int) -> Partition | None:
        with suppress(OSError):
            if base_offsets(self.disk.names(partition_folder(topic.topic_id, index)), LOG):
                found = self.get(topic, index, now_ms)
                return found if isinstance(found, Partition) else None
        return None

    def _all_partitions(self) -> Iterator[tuple[Topic, int]]:
        for topic in self.catalog.topics.values():
            for index in range(topic.partitions):
                yield topic, index

    def error_code(self, found: StorageError | None) -> ErrorCode:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else ErrorCode.KAFKA_STORAGE_ERROR
