"""The parts of a node that handlers work with. Nothing in it knows the node."""

from __future__ import annotations

from collections.abc import Callable
from typing import final
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode
from penstock.queue.core.batch_openings import Openings
from penstock.queue.core.catalog import Catalog, Topic
from penstock.queue.core.counters import Counters
from penstock.queue.core.memory_budget import MemoryBudget
from penstock.queue.core.metadata_log import MetaLog
from penstock.queue.core.notes import Notes
from penstock.queue.core.partition import Partition
from penstock.queue.core.partitions import Store
from penstock.queue.core.producer_ids import ProducerIds
from penstock.queue.core.replies import Replies
from penstock.queue.core.waiting_fetch import Loads, Timers


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
        room: MemoryBudget,
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
