"""ConsumerGroupHeartbeat: a member of the newer protocol says what it has, and learns what it gets."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, array_or_null, int16, int32, string, struct_or_null, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest(Message):
    """A member: who it is, what it wants, what it has."""

    versions = (0, 1)
    flexible = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string.or_null()
    rack_id: str | None = string.or_null()
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array_or_null(string, default_null=True)
    subscribed_topic_regex: str | None = string.or_null(since=1)
    server_assignor: str | None = string.or_null()
    topic_partitions: list[TopicPartitions] | None = array_or_null(TopicPartitions, default_null=True)


@dataclass(slots=True)
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@dataclass(slots=True)
class ConsumerGroupHeartbeatResponse(Message):
    """Its epoch, and its partitions if they have changed."""

    versions = (0, 1)
    flexible = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null()
    member_id: str | None = string.or_null()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct_or_null(Assignment)
