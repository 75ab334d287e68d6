"""Bugs of groups, planted on purpose."""

from __future__ import annotations

from typing import Any

from penstock.errors import ErrorCode
from penstock.queue.core.table_log import TableLog
from penstock.queue.groups.changes import ConsumerMember
from penstock.queue.groups.classic.group import Group
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.partitions import Parts
from penstock.queue.groups.table import GroupTable


def committed_before_durable(sound: Any) -> Any:
    """The client is told at once; the disk may say otherwise."""

    def append(self: TableLog[Any, Any], changes: list[Any], finish: Any, now_ms: int) -> None:
        finish(ErrorCode.NONE)
        sound(self, changes, lambda _: None, now_ms)

    return append


def true_before_durable(sound: Any) -> Any:
    """What is written is believed; a power cut makes it untrue."""

    def append(self: TableLog[Any, Any], changes: list[Any], finish: Any, now_ms: int) -> None:
        for change in changes:
            self.table.replay_(change)
        sound(self, changes, finish, now_ms)

    return append


def snapshot_without_positions(sound: Any) -> Any:
    """A compaction that forgets what it was made for."""

    def snapshot(self: GroupTable) -> Any:
        return [change for change in sound(self) if type(change).__name__ != "OffsetsCommitted"]

    return snapshot


def fenced_may_commit(sound: Any) -> Any:
    """Whoever was a member once may commit for ever."""

    def refuse_commit(self: Group, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        code: ErrorCode = sound(self, member_id, instance_id, generation)
        return ErrorCode.NONE if code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID) else code

    return refuse_commit


def generation_used_twice(sound: Any) -> Any:
    def begin_generation(self: Group, now_ms: int) -> None:
        sound(self, now_ms)
        self.generation = max(1, self.generation - 1)

    return begin_generation


def taken_before_given_back(sound: Any) -> Any:
    """Whoever shall have a partition gets it at once."""

    def plan_next(group: ConsumerGroup, member: ConsumerMember, owned: Parts | None) -> ConsumerMember:
        owners, group.owners = group.owners, {}
        try:
            planned: ConsumerMember = sound(group, member, owned)
            return planned
        finally:
            group.owners = owners

    return plan_next


def joins_wait_for_ever(_: Any) -> Any:
    """Nobody looks at the clock while members are missing."""
    return lambda *_: None
