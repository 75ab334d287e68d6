"""ListOffsets: find offsets by time."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int8, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ListOffsetsPartition(Struct):
    partition_index: int = int32()
    current_leader_epoch: int = int32(default=-1, since=4, ignorable=True)
    timestamp: int = int64()


@dataclass(slots=True)
class ListOffsetsTopic(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


@dataclass(slots=True)
class ListOffsetsRequest(Message):
    """Timestamps to look up; negative ones name the ends of the log."""

    versions = (1, 11)
    flexible = 6

    replica_id: int = int32()
    isolation_level: int = int8(since=2)
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(since=10, ignorable=True)


@dataclass(slots=True)
class ListOffsetsPartitionResponse(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(default=-1, since=4)


@dataclass(slots=True)
class ListOffsetsTopicResponse(Struct):
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


@dataclass(slots=True)
class ListOffsetsResponse(Message):
    """The first offset at or after each timestamp."""

    versions = (1, 11)
    flexible = 6

    throttle_time_ms: int = int32(since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
