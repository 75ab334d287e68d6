"""Bugs of transactions, planted on purpose."""

from __future__ import annotations

from typing import Any

from penstock.errors import ErrorCode
from penstock.queue.core.partition import Partition
from penstock.queue.groups.coordinator import Coordinator as GroupCoordinator
from penstock.queue.log.log import Log
from penstock.queue.transactions.changes import Transaction
from penstock.queue.transactions.coordinator import Coordinator


def markers_before_decision(_: Any) -> Any:
    """Partitions hear how it ends before that is durable; a power cut lets half of them forget."""

    def decide(self: Coordinator, planned: Transaction, reply: Any, now_ms: int) -> None:
        self._finish(planned, reply, now_ms)

    return decide


def ends_differ(sound: Any) -> Any:
    """Of what is committed only the first partition of a topic hears; the others hear that it was aborted."""

    def end_in(node: Any, partition: Partition, producer: int, epoch: int, is_commit: bool, *rest: Any) -> None:
        sound(node, partition, producer, epoch, is_commit and partition.name.endswith("-0"), *rest)

    return end_in


def end_forgotten(_: Any) -> Any:
    """Who was killed while it wrote markers does not go on with them."""
    return lambda self, transactional_id, now_ms: None


def stable_end_too_far(_: Any) -> Any:
    def settle(self: Log) -> None:
        self.stable = self.visible

    return settle


def aborted_not_told(_: Any) -> Any:
    return lambda log, offset, end: []


def fenced_may_write(sound: Any) -> Any:
    """Only the partition knows epochs, and it may never have heard of the new one."""

    def refuse(self: Coordinator, transactional_id: str, owner: Any) -> ErrorCode:
        code: ErrorCode = sound(self, transactional_id, owner)
        return ErrorCode.NONE if code is ErrorCode.PRODUCER_FENCED else code

    return refuse


def positions_at_once(_: Any) -> Any:
    """Positions of a transaction are committed like any other."""

    def hold(
        self: GroupCoordinator, group_id: str, producer_id: int, epoch: int, positions: Any, finish: Any, now_ms: int
    ) -> None:
        self.commit(group_id, positions, finish, now_ms)

    return hold
