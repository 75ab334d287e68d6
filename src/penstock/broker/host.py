"""The parts of a node that handlers work with. Nothing in it knows the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import final
from uuid import UUID

from penstock.broker.catalog import Catalog, Topic
from penstock.broker.counters import Counters
from penstock.broker.metalog import MetaLog
from penstock.broker.notes import Notes
from penstock.broker.openings import Openings
from penstock.broker.partition import Partition
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.replies import Replies
from penstock.broker.room import Room
from penstock.broker.store import Store
from penstock.broker.waiting_fetch import Loads, Timers
from penstock.config import BrokerConfig
from penstock.errors import ErrorCode


@final
class Host:
    """A final class: compiled, its parts are reached without a look into a dictionary."""

    __slots__ = (
        "address",
        "catalog",
        "changes",
        "config",
        "counters",
        "dirty",
        "loads",
        "new_id",
        "notes",
        "openings",
        "partitions",
        "producer_ids",
        "replies",
        "room",
        "timers",
    )

    def __init__(
        self,
        *,
        config: BrokerConfig,
        address: tuple[str, int],
        new_id: Callable[[], UUID],
        catalog: Catalog,
        partitions: Store,
        dirty: dict[Partition, None],
        replies: Replies,
        changes: MetaLog,
        counters: Counters,
        room: Room,
        openings: Openings,
        notes: Notes,
    ) -> None:
        self.config = config
        self.address = address
        self.new_id = new_id
        self.catalog = catalog
        self.partitions = partitions
        self.dirty = dirty  # written to in this step: each is flushed at its end
        self.replies = replies
        self.changes = changes
        self.producer_ids = ProducerIds(catalog, changes)
        self.counters = counters
        self.room = room
        self.openings = openings
        self.loads = Loads(config.loads_max)
        self.timers = Timers()
        self.notes = notes

    def partition(self, topic: Topic, index: int, now_ms: int) -> Partition | ErrorCode:
        """The partition to work on, or the code that says why there is none."""
        found = self.partitions.open.get((topic.raw_id, index))
        if found is not None:
            return found
        opened = self.partitions.get(topic, index, now_ms)
        return opened if isinstance(opened, Partition) else self.partitions.error_code(opened)
