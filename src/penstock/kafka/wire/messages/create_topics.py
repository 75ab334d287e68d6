"""CreateTopics: make topics."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, array_or_null, boolean, int8, int16, int32, string, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class CreatableReplicaAssignment(Struct):
    partition_index: int = int32()
    broker_ids: list[int] = array(int32)


@dataclass(slots=True)
class CreatableTopicConfig(Struct):
    name: str = string()
    value: str | None = string.or_null(default="")


@dataclass(slots=True)
class CreatableTopic(Struct):
    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment)
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig)


@dataclass(slots=True)
class CreateTopicsRequest(Message):
    """Topics to create."""

    versions = (2, 7)
    flexible = 5

    topics: list[CreatableTopic] = array(CreatableTopic)
    timeout_ms: int = int32(default=60_000)
    validate_only: bool = boolean()


@dataclass(slots=True)
class CreatableTopicConfigs(Struct):
    name: str = string(since=5)
    value: str | None = string.or_null(default="", since=5)
    read_only: bool = boolean(since=5)
    config_source: int = int8(default=-1, since=5, ignorable=True)
    is_sensitive: bool = boolean(since=5)


@dataclass(slots=True)
class CreatableTopicResult(Struct):
    name: str = string()
    topic_id: UUID = uuid(since=7, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string.or_null(default="", ignorable=True)
    topic_config_error_code: int = int16(since=5, tag=0, ignorable=True)
    num_partitions: int = int32(default=-1, since=5, ignorable=True)
    replication_factor: int = int16(default=-1, since=5, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array_or_null(CreatableTopicConfigs, since=5, ignorable=True)


@dataclass(slots=True)
class CreateTopicsResponse(Message):
    """What became of each topic."""

    versions = (2, 7)
    flexible = 5

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult)
