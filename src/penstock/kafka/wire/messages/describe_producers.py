"""DescribeProducers: who writes to a partition, and which transactions stand open there."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribeProducersTopic(Struct):
    name: str = string()
    partition_indexes: list[int] = array(int32)


@dataclass(slots=True)
class DescribeProducersRequest(Message):
    """Partitions by topic."""

    versions = (0, 0)
    flexible = 0

    topics: list[DescribeProducersTopic] = array(DescribeProducersTopic)


@dataclass(slots=True)
class ProducerState(Struct):
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@dataclass(slots=True)
class DescribeProducersPartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null()
    active_producers: list[ProducerState] = array(ProducerState)


@dataclass(slots=True)
class DescribeProducersTopicResponse(Struct):
    name: str = string()
    partitions: list[DescribeProducersPartitionResponse] = array(DescribeProducersPartitionResponse)


@dataclass(slots=True)
class DescribeProducersResponse(Message):
    """The producers of each partition."""

    versions = (0, 0)
    flexible = 0

    throttle_time_ms: int = int32()
    topics: list[DescribeProducersTopicResponse] = array(DescribeProducersTopicResponse)
