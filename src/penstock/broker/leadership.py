"""What answers about topics say of each partition: this node leads it, alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from penstock.broker.catalog import NODE_ID, name_fault
from penstock.errors import ErrorCode
from penstock.records.batch import LEADER_EPOCH


class _Partition(Protocol):
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]


_P = TypeVar("_P", bound=_Partition)


def led_here(blank: Callable[[], _P], indexes: Iterable[int]) -> list[_P]:
    """The partitions of these numbers in the form of one API, each made from `blank`."""
    partitions = []
    for index in indexes:
        partition = blank()
        partition.partition_index = index
        partition.leader_id = NODE_ID
        partition.leader_epoch = LEADER_EPOCH
        partition.replica_nodes = [NODE_ID]
        partition.isr_nodes = [NODE_ID]
        partitions.append(partition)
    return partitions


def absence_code(name: str) -> ErrorCode:
    """Why there is no topic of this name."""
    return ErrorCode.INVALID_TOPIC_EXCEPTION if name_fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
