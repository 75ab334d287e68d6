"""OffsetFetch: how far groups have come."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, array_or_null, boolean, int16, int32, int64, string, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class OffsetFetchRequestTopic(Struct):
    name: str = string(until=7)
    partition_indexes: list[int] = array(int32, until=7)


@dataclass(slots=True)
class OffsetFetchRequestTopics(Struct):
    name: str = string(since=8, until=9, ignorable=True)
    topic_id: UUID = uuid(since=10, ignorable=True)
    partition_indexes: list[int] = array(int32, since=8)


@dataclass(slots=True)
class OffsetFetchRequestGroup(Struct):
    group_id: str = string(since=8)
    member_id: str | None = string.or_null(since=9, ignorable=True)
    member_epoch: int = int32(default=-1, since=9, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = array_or_null(OffsetFetchRequestTopics, since=8)


@dataclass(slots=True)
class OffsetFetchRequest(Message):
    """Groups, and the partitions asked for; null asks for all."""

    versions = (1, 10)
    flexible = 6

    group_id: str = string(until=7)
    topics: list[OffsetFetchRequestTopic] | None = array_or_null(OffsetFetchRequestTopic, until=7, nullable_since=2)
    groups: list[OffsetFetchRequestGroup] = array(OffsetFetchRequestGroup, since=8)
    require_stable: bool = boolean(since=7)


@dataclass(slots=True)
class OffsetFetchResponsePartition(Struct):
    partition_index: int = int32(until=7)
    committed_offset: int = int64(until=7)
    committed_leader_epoch: int = int32(default=-1, since=5, until=7, ignorable=True)
    metadata: str | None = string.or_null(default="", until=7)
    error_code: int = int16(until=7)


@dataclass(slots=True)
class OffsetFetchResponseTopic(Struct):
    name: str = string(until=7)
    partitions: list[OffsetFetchResponsePartition] = array(OffsetFetchResponsePartition, until=7)


@dataclass(slots=True)
class OffsetFetchResponsePartitions(Struct):
    partition_index: int = int32(since=8)
    committed_offset: int = int64(since=8)
    committed_leader_epoch: int = int32(default=-1, since=8, ignorable=True)
    metadata: str | None = string.or_null(default="", since=8)
    error_code: int = int16(since=8)


@dataclass(slots=True)
class OffsetFetchResponseTopics(Struct):
    name: str = string(since=8, until=9, ignorable=True)
    topic_id: UUID = uuid(since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = array(OffsetFetchResponsePartitions, since=8)


@dataclass(slots=True)
class OffsetFetchResponseGroup(Struct):
    group_id: str = string(since=8)
    topics: list[OffsetFetchResponseTopics] = array(OffsetFetchResponseTopics, since=8)
    error_code: int = int16(since=8)


@dataclass(slots=True)
class OffsetFetchResponse(Message):
    """The committed positions; -1 where there is none."""

    versions = (1, 10)
    flexible = 6

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array(OffsetFetchResponseTopic, until=7)
    error_code: int = int16(since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array(OffsetFetchResponseGroup, since=8)
