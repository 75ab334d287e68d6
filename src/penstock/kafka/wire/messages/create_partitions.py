"""CreatePartitions: grow topics."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, array_or_null, boolean, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = array(int32)


@dataclass(slots=True)
class CreatePartitionsTopic(Struct):
    name: str = string()
    count: int = int32()
    assignments: list[CreatePartitionsAssignment] | None = array_or_null(CreatePartitionsAssignment)


@dataclass(slots=True)
class CreatePartitionsRequest(Message):
    """Topics and the number of partitions each shall have."""

    versions = (0, 3)
    flexible = 2

    topics: list[CreatePartitionsTopic] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@dataclass(slots=True)
class CreatePartitionsTopicResult(Struct):
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string.or_null()


@dataclass(slots=True)
class CreatePartitionsResponse(Message):
    """What became of each topic."""

    versions = (0, 3)
    flexible = 2

    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array(CreatePartitionsTopicResult)
