"""DescribeTopicPartitions: topics with their partitions, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, array_or_null, boolean, int16, int32, string, struct_or_null, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribeTopicPartitionsTopic(Struct):
    name: str = string()


@dataclass(slots=True)
class DescribeTopicPartitionsCursor(Struct):
    topic_name: str = string()
    partition_index: int = int32()


@dataclass(slots=True)
class DescribeTopicPartitionsRequest(Message):
    """Topics, none means all; where to go on."""

    versions = (0, 0)
    flexible = 0

    topics: list[DescribeTopicPartitionsTopic] = array(DescribeTopicPartitionsTopic)
    response_partition_limit: int = int32(default=2_000)
    cursor: DescribeTopicPartitionsCursor | None = struct_or_null(DescribeTopicPartitionsCursor)


@dataclass(slots=True)
class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    eligible_leader_replicas: list[int] | None = array_or_null(int32, default_null=True)
    last_known_elr: list[int] | None = array_or_null(int32, default_null=True)
    offline_replicas: list[int] = array(int32)


@dataclass(slots=True)
class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = int16()
    name: str | None = string.or_null(default="")
    topic_id: UUID = uuid()
    is_internal: bool = boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=-(2**31))


@dataclass(slots=True)
class DescribeTopicPartitionsResponse(Message):
    """A page of partitions, and where the next one begins."""

    versions = (0, 0)
    flexible = 0

    throttle_time_ms: int = int32()
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: DescribeTopicPartitionsCursor | None = struct_or_null(DescribeTopicPartitionsCursor)
