"""ListPartitionReassignments: which partitions move between brokers."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, array_or_null, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ListPartitionReassignmentsTopics(Struct):
    name: str = string()
    partition_indexes: list[int] = array(int32)


@dataclass(slots=True)
class ListPartitionReassignmentsRequest(Message):
    """Partitions asked about; null means all."""

    versions = (0, 0)
    flexible = 0

    timeout_ms: int = int32(default=60_000)
    topics: list[ListPartitionReassignmentsTopics] | None = array_or_null(
        ListPartitionReassignmentsTopics, default_null=True
    )


@dataclass(slots=True)
class OngoingPartitionReassignment(Struct):
    partition_index: int = int32()
    replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)


@dataclass(slots=True)
class OngoingTopicReassignment(Struct):
    name: str = string()
    partitions: list[OngoingPartitionReassignment] = array(OngoingPartitionReassignment)


@dataclass(slots=True)
class ListPartitionReassignmentsResponse(Message):
    """Those that move now."""

    versions = (0, 0)
    flexible = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")
    topics: list[OngoingTopicReassignment] = array(OngoingTopicReassignment)
