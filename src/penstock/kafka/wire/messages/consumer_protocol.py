"""What consumers tell each other inside of JoinGroup and SyncGroup."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import NEVER, array, data, int32, string
from penstock.kafka.wire.message import Message, Struct
from penstock.ports import Buffer


@dataclass(slots=True)
class OwnedPartition(Struct):
    topic: str = string(since=1)
    partitions: list[int] = array(int32, since=1)


@dataclass(slots=True)
class ConsumerProtocolSubscription(Message):
    """Topics a member wants, and the partitions it has."""

    versions = (0, 3)
    flexible = NEVER

    topics: list[str] = array(string)
    user_data: Buffer | None = data.or_null()
    owned_partitions: list[OwnedPartition] = array(OwnedPartition, since=1, ignorable=True)
    generation_id: int = int32(default=-1, since=2, ignorable=True)
    rack_id: str | None = string.or_null(since=3, ignorable=True)


@dataclass(slots=True)
class AssignedPartition(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class ConsumerProtocolAssignment(Message):
    """Partitions a member gets."""

    versions = (0, 3)
    flexible = NEVER

    assigned_partitions: list[AssignedPartition] = array(AssignedPartition)
    user_data: Buffer | None = data.or_null()
