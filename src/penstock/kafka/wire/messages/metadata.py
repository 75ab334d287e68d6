"""Metadata: who leads what."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, array_or_null, boolean, int16, int32, string, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class MetadataRequestTopic(Struct):
    topic_id: UUID = uuid(since=10, ignorable=True)
    name: str | None = string.or_null(default="", nullable_since=10)


@dataclass(slots=True)
class MetadataRequest(Message):
    """Topics to describe, by name or id; null asks for all."""

    versions = (0, 13)
    flexible = 9

    topics: list[MetadataRequestTopic] | None = array_or_null(MetadataRequestTopic, nullable_since=1)
    allow_auto_topic_creation: bool = boolean(default=True, since=4)
    include_cluster_authorized_operations: bool = boolean(since=8, until=10)
    include_topic_authorized_operations: bool = boolean(since=8)


@dataclass(slots=True)
class MetadataResponseBroker(Struct):
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string.or_null(since=1, ignorable=True)


@dataclass(slots=True)
class MetadataResponsePartition(Struct):
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, since=7, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    offline_replicas: list[int] = array(int32, since=5, ignorable=True)


@dataclass(slots=True)
class MetadataResponseTopic(Struct):
    error_code: int = int16()
    name: str | None = string.or_null(default="", nullable_since=12)
    topic_id: UUID = uuid(since=10, ignorable=True)
    is_internal: bool = boolean(since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(default=-(2**31), since=8)


@dataclass(slots=True)
class MetadataResponse(Message):
    """Brokers, and the partitions of each topic asked for."""

    versions = (0, 13)
    flexible = 9

    throttle_time_ms: int = int32(since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string.or_null(since=2, ignorable=True)
    controller_id: int = int32(default=-1, since=1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(default=-(2**31), since=8, until=10)
    error_code: int = int16(since=13, ignorable=True)
