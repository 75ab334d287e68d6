"""What the rules of the newer group protocol need of the groups that they change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.queue.core.catalog import Catalog
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.pattern import Patterns
from penstock.queue.groups.consumer.table import ConsumerTable


class ClassicGroups(Protocol):
    """The groups of the classic protocol, as those of the newer one need them."""

    def has_classic(self, group_id: str) -> bool: ...

    def restore(self, group_id: str, now_ms: int) -> None:
        """A group could not be kept: it becomes what it was before."""

    def on_downgraded(self, group_id: str, now_ms: int) -> None:
        """All members that are left speak the classic protocol."""


class GroupWrites(Protocol):
    """The live groups of the newer protocol."""

    config: BrokerConfig
    catalog: Catalog
    table: ConsumerTable
    classic: ClassicGroups
    patterns: Patterns
    groups: dict[str, ConsumerGroup]

    @property
    def new_id(self) -> Callable[[], UUID]: ...

    def listen_for(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None: ...

    def watch_revocation(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None: ...

    def expect_return(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None: ...
