"""What was promised to clients, kept outside of the node that promised it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from penstock.queue.log.layout import partition_folder

Key = tuple[bytes, int]


@dataclass(slots=True)
class SimTopic:
    """A topic as its creator knows it."""

    name: str
    topic_id: UUID
    partitions: int
    in_memory: bool = False
    retention_ms: int = -1  # the shortest ever asked for
    retention_bytes: int = -1
    is_going: bool = False  # somebody asked to delete it
    is_gone: bool = False  # and was told that it is


@dataclass(slots=True)
class Promise:
    """An acknowledged batch."""

    payload: bytes
    next_offset: int
    timestamp: int


@dataclass(slots=True)
class Account:
    """All that was said about one partition."""

    topic: SimTopic
    index: int
    folder: str = field(init=False)
    acked: dict[int, Promise] = field(default_factory=dict)
    told: dict[int, tuple[bytes, int]] = field(default_factory=dict)  # offset -> payload and place in it
    end: int = 0  # the highest end that a client was told of
    end_before: int = 0  # the same before this step
    told_at: int = -1  # the last step in which somebody was told
    told_to: dict[int, int] = field(default_factory=dict)  # and what, by connection
    delete_below: int = 0  # the highest offset ever asked for in DeleteRecords
    deleted_below: int = 0  # the highest one that was granted
    damaged: dict[int, int] = field(default_factory=dict)  # base offset -> next offset, of batches with flipped bits

    def __post_init__(self) -> None:
        self.folder = partition_folder(self.topic.topic_id, self.index)

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.index}"

    @property
    def is_trimmed(self) -> bool:
        """Whether anything may have been removed from it on purpose."""
        return bool(self.delete_below or self.topic.retention_ms >= 0 or self.topic.retention_bytes >= 0)

    def may_be_gone(self, promise: Promise, now_ms: int) -> bool:
        """Whether retention or a client allowed this batch to be removed."""
        topic = self.topic
        if topic.is_going or topic.retention_bytes >= 0 or promise.next_offset <= self.delete_below:
            return True
        return topic.retention_ms >= 0 and promise.timestamp < now_ms - topic.retention_ms


class Place(NamedTuple):
    """A partition by the name of its topic; no name is used twice."""

    topic: str
    number: int


class Ledger:
    """Topics and partitions, every value that was ever sent, and what groups were told."""

    def __init__(self) -> None:
        self.committed: dict[tuple[str, Place], int] = {}  # the highest position acknowledged to a group
        self.owners: dict[tuple[str, int], dict[Place, str]] = {}  # by group and generation
        self.handed_out: dict[tuple[str, int], int] = {}  # when a generation was first handed out
        self.topics: dict[str, SimTopic] = {}
        self.accounts: dict[Key, Account] = {}
        self.values: dict[bytes, tuple[str, ...]] = {}  # payload -> the values in it
        self.producer_ids: dict[int, str] = {}
        self._names: dict[bytes, SimTopic] = {}

    def add(self, topic: SimTopic) -> None:
        self.topics[topic.name] = topic
        self._names[topic.topic_id.bytes] = topic

    def topic(self, name: str, topic_id: UUID) -> SimTopic | None:
        return self._names.get(topic_id.bytes) or self.topics.get(name)

    def account(self, topic: SimTopic, index: int) -> Account:
        key = (topic.topic_id.bytes, index)
        found = self.accounts.get(key)
        if found is None:
            found = self.accounts[key] = Account(topic, index)
        return found

    def forget_group(self, group: str) -> None:
        """It has ended; one of the same name begins anew."""
        self.owners = {key: owners for key, owners in self.owners.items() if key[0] != group}
        self.handed_out = {key: since_ms for key, since_ms in self.handed_out.items() if key[0] != group}

    def live(self) -> list[SimTopic]:
        return [topic for topic in self.topics.values() if not topic.is_going]
