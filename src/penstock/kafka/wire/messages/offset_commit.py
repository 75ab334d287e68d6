"""OffsetCommit: how far a group has come."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, int16, int32, int64, string, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class OffsetCommitRequestPartition(Struct):
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(default=-1, since=6, ignorable=True)
    committed_metadata: str | None = string.or_null(default="")


@dataclass(slots=True)
class OffsetCommitRequestTopic(Struct):
    name: str = string(until=9, ignorable=True)
    topic_id: UUID = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = array(OffsetCommitRequestPartition)


@dataclass(slots=True)
class OffsetCommitRequest(Message):
    """Positions by topic and partition."""

    versions = (2, 10)
    flexible = 8

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1, ignorable=True)
    member_id: str = string(ignorable=True)
    group_instance_id: str | None = string.or_null(since=7)
    retention_time_ms: int = int64(default=-1, until=4, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array(OffsetCommitRequestTopic)


@dataclass(slots=True)
class OffsetCommitResponsePartition(Struct):
    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True)
class OffsetCommitResponseTopic(Struct):
    name: str = string(until=9, ignorable=True)
    topic_id: UUID = uuid(since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = array(OffsetCommitResponsePartition)


@dataclass(slots=True)
class OffsetCommitResponse(Message):
    """What became of each."""

    versions = (2, 10)
    flexible = 8

    throttle_time_ms: int = int32(since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array(OffsetCommitResponseTopic)
