"""What the node knows of topics; only replay_ changes it, live and after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from penstock.config.topic import TopicConfig, topic_config
from penstock.queue.core.catalog_changes import (
    Change,
    ClusterNamed,
    PartitionsAdded,
    ProducerIdsReserved,
    Restarted,
    StartMoved,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
)

NODE_ID = 1
NAME_LENGTH_MAX = 249
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Topic:
    """One topic as the catalog knows it."""

    __slots__ = ("config", "name", "overrides", "partitions", "raw_id", "raw_name", "starts", "topic_id")

    def __init__(self, name: str, topic_id: UUID, partitions: int, overrides: dict[str, str]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.overrides = overrides
        self.config: TopicConfig = topic_config(overrides)
        self.starts: dict[int, int] = {}
        self.raw_name = name.encode()
        self.raw_id = topic_id.bytes


class Catalog:
    """Topics by name and id, the cluster's name, the reserve of producer ids."""

    def __init__(self) -> None:
        self.version = 0  # grows with every change: what was looked up before may be stale
        self._clear()

    def _clear(self) -> None:
        self.cluster_id = ""
        self.producer_ids_below = 0
        self.topics: dict[str, Topic] = {}
        self.by_key: dict[bytes, Topic] = {}  # raw name or raw id, as requests carry them
        self.partition_count = 0
        self.deleted: set[UUID] = set()  # only asked, never walked through

    def by_id(self, topic_id: UUID) -> Topic | None:
        return self.by_key.get(b"\0" + topic_id.bytes)

    def find(self, raw: bytes, by_id: bool) -> Topic | None:
        """The topic a hot request names by its raw name, or by its raw id."""
        return self.by_key.get(b"\0" + raw if by_id else raw)

    def replay_(self, change: Change) -> None:
        """Make a durable change true."""
        self.version += 1
        match change:
            case ClusterNamed(cluster_id=cluster_id):
                self.cluster_id = cluster_id
            case TopicCreated():
                self._add(Topic(change.name, change.topic_id, change.partitions, dict(change.config)))
            case TopicDeleted(topic_id=topic_id):
                self._remove(topic_id)
            case PartitionsAdded(topic_id=topic_id, partitions=partitions):
                if topic := self.by_id(topic_id):
                    self.partition_count += partitions - topic.partitions
                    topic.partitions = partitions
            case TopicConfigured(topic_id=topic_id, config=config):
                if topic := self.by_id(topic_id):
                    topic.overrides = dict(config)
                    topic.config = topic_config(config)
            case StartMoved(topic_id=topic_id, partition=partition, offset=offset):
                if topic := self.by_id(topic_id):
                    topic.starts[partition] = offset
            case ProducerIdsReserved(below=below):
                self.producer_ids_below = below
            case Restarted():
                self._clear()

    def _add(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.by_key[topic.raw_name] = topic
        self.by_key[b"\0" + topic.raw_id] = topic
        self.partition_count += topic.partitions

    def _remove(self, topic_id: UUID) -> None:
        self.deleted.add(topic_id)
        topic = self.by_id(topic_id)
        if topic is None:
            return
        del self.topics[topic.name]
        del self.by_key[topic.raw_name]
        del self.by_key[b"\0" + topic.raw_id]
        self.partition_count -= topic.partitions

    def snapshot(self) -> Iterator[Change]:
        """Changes that make this catalog from nothing."""
        yield Restarted()
        yield ClusterNamed(self.cluster_id)
        yield ProducerIdsReserved(self.producer_ids_below)
        for topic in self.topics.values():
            yield TopicCreated(topic.name, topic.topic_id, topic.partitions, topic.overrides)
            for partition, offset in topic.starts.items():
                yield StartMoved(topic.topic_id, partition, offset)


def name_fault(name: str) -> str | None:
    """Why a topic cannot have this name, or None."""
    if not name:
        return "a topic needs a name"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > NAME_LENGTH_MAX:
        return f"a topic name has at most {NAME_LENGTH_MAX} characters, this one has {len(name)}"
    if not _NAME_LETTERS.issuperset(name):
        return "a topic name consists of letters, digits, '.', '_' and '-'"
    return None
