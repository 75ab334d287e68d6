"""OffsetDelete: forget positions of a group."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import NEVER, array, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class OffsetDeleteRequestPartition(Struct):
    partition_index: int = int32()


@dataclass(slots=True)
class OffsetDeleteRequestTopic(Struct):
    name: str = string()
    partitions: list[OffsetDeleteRequestPartition] = array(OffsetDeleteRequestPartition)


@dataclass(slots=True)
class OffsetDeleteRequest(Message):
    """Partitions to forget."""

    versions = (0, 0)
    flexible = NEVER

    group_id: str = string()
    topics: list[OffsetDeleteRequestTopic] = array(OffsetDeleteRequestTopic)


@dataclass(slots=True)
class OffsetDeleteResponsePartition(Struct):
    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True)
class OffsetDeleteResponseTopic(Struct):
    name: str = string()
    partitions: list[OffsetDeleteResponsePartition] = array(OffsetDeleteResponsePartition)


@dataclass(slots=True)
class OffsetDeleteResponse(Message):
    """What became of each."""

    versions = (0, 0)
    flexible = NEVER

    error_code: int = int16()
    throttle_time_ms: int = int32(ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array(OffsetDeleteResponseTopic)
