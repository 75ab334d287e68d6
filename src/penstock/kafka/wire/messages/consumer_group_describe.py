"""ConsumerGroupDescribe: the members of groups of the newer protocol."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, boolean, int8, int16, int32, string, struct, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ConsumerGroupDescribeRequest(Message):
    """Names of groups."""

    versions = (0, 1)
    flexible = 0

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


@dataclass(slots=True)
class TopicPartitions(Struct):
    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class Assignment(Struct):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


@dataclass(slots=True)
class Member(Struct):
    member_id: str = string()
    instance_id: str | None = string.or_null()
    rack_id: str | None = string.or_null()
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string.or_null()
    assignment: Assignment = struct(Assignment)
    target_assignment: Assignment = struct(Assignment)
    member_type: int = int8(default=-1, since=1, ignorable=True)


@dataclass(slots=True)
class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string.or_null()
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(default=-(2**31))


@dataclass(slots=True)
class ConsumerGroupDescribeResponse(Message):
    """Each group with its members."""

    versions = (0, 1)
    flexible = 0

    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array(DescribedGroup)
