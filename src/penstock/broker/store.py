"""The partitions of this node on disk: opened when first used, removed with their topic, trimmed by retention."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

from penstock.broker.catalog import Catalog, Topic
from penstock.broker.changes import Change, PartitionsAdded, StartMoved, TopicConfigured, TopicCreated, TopicDeleted
from penstock.broker.partition import Partition
from penstock.config import BrokerConfig
from penstock.errors import ErrorCode, StorageError
from penstock.log.layout import LOG, TOPICS_FOLDER, base_offsets, partition_folder, topic_folder
from penstock.log.recovery import SyncFailedError, open_log
from penstock.log.retention import plan_start, should_roll
from penstock.ports import Disk

TRIM_AT_ONCE = 200  # partitions a step: opening them all at once would stall every client


class Store:
    """Partitions by (topic id, index)."""

    def __init__(self, disk: Disk, config: BrokerConfig, catalog: Catalog) -> None:
        self.disk = disk
        self.config = config
        self.catalog = catalog
        self.open: dict[tuple[bytes, int], Partition] = {}
        self.failed: dict[tuple[bytes, int], str] = {}
        self._untrimmed: list[tuple[Topic, int]] = []

    def get(self, topic: Topic, index: int, now_ms: int) -> Partition | StorageError | None:
        """The partition, opened if need be; None if the topic has none of this number."""
        if not 0 <= index < topic.partitions:
            return None
        key = (topic.raw_id, index)
        if reason := self.failed.get(key):
            return StorageError(reason)
        try:
            log = open_log(self.disk, partition_folder(topic.topic_id, index), topic.config, self.config, now_ms)
        except SyncFailedError as error:
            self.failed[key] = str(error)  # a sync is never tried again
            return error
        except StorageError as error:
            return error
        with suppress(OSError):  # what cannot be removed now is removed by retention
            log.advance_start(topic.starts.get(index, 0))
        partition = Partition(f"{topic.name}-{index}", log)
        self.open[key] = partition
        return partition

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
                    with suppress(OSError):
                        moved.log.advance_start(offset)
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
        with suppress(OSError, StorageError):
            if should_roll(log, now_ms):
                log.start_afresh()
            log.advance_start(plan_start(log, now_ms))
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
