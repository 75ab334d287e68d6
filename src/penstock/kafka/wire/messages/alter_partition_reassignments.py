"""AlterPartitionReassignments: which brokers a partition belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, array_or_null, boolean, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ReassignablePartition(Struct):
    partition_index: int = int32()
    replicas: list[int] | None = array_or_null(int32, default_null=True)


@dataclass(slots=True)
class ReassignableTopic(Struct):
    name: str = string()
    partitions: list[ReassignablePartition] = array(ReassignablePartition)


@dataclass(slots=True)
class AlterPartitionReassignmentsRequest(Message):
    """Replicas for partitions; null takes a move back."""

    versions = (0, 1)
    flexible = 0

    timeout_ms: int = int32(default=60_000)
    allow_replication_factor_change: bool = boolean(default=True, since=1)
    topics: list[ReassignableTopic] = array(ReassignableTopic)


@dataclass(slots=True)
class ReassignablePartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")


@dataclass(slots=True)
class ReassignableTopicResponse(Struct):
    name: str = string()
    partitions: list[ReassignablePartitionResponse] = array(ReassignablePartitionResponse)


@dataclass(slots=True)
class AlterPartitionReassignmentsResponse(Message):
    """Whether each may move."""

    versions = (0, 1)
    flexible = 0

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean(default=True, since=1, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")
    responses: list[ReassignableTopicResponse] = array(ReassignableTopicResponse)
