"""DescribeQuorum: who keeps the metadata log."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, int16, int32, int64, string, uint16, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribeQuorumRequestPartition(Struct):
    partition_index: int = int32()


@dataclass(slots=True)
class DescribeQuorumRequestTopic(Struct):
    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartition] = array(DescribeQuorumRequestPartition)


@dataclass(slots=True)
class DescribeQuorumRequest(Message):
    """Logs asked about."""

    versions = (0, 2)
    flexible = 0

    topics: list[DescribeQuorumRequestTopic] = array(DescribeQuorumRequestTopic)


@dataclass(slots=True)
class ReplicaState(Struct):
    replica_id: int = int32()
    replica_directory_id: UUID = uuid(since=2)
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(default=-1, since=1, ignorable=True)
    last_caught_up_timestamp: int = int64(default=-1, since=1, ignorable=True)


@dataclass(slots=True)
class DescribeQuorumResponsePartition(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null(default="", since=2, ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


@dataclass(slots=True)
class DescribeQuorumResponseTopic(Struct):
    topic_name: str = string()
    partitions: list[DescribeQuorumResponsePartition] = array(DescribeQuorumResponsePartition)


@dataclass(slots=True)
class DescribeQuorumListener(Struct):
    name: str = string(since=2)
    host: str = string(since=2)
    port: int = uint16(since=2)


@dataclass(slots=True)
class DescribeQuorumNode(Struct):
    node_id: int = int32(since=2)
    listeners: list[DescribeQuorumListener] = array(DescribeQuorumListener, since=2)


@dataclass(slots=True)
class DescribeQuorumResponse(Message):
    """Leader, voters and observers of each."""

    versions = (0, 2)
    flexible = 0

    error_code: int = int16()
    error_message: str | None = string.or_null(default="", since=2, ignorable=True)
    topics: list[DescribeQuorumResponseTopic] = array(DescribeQuorumResponseTopic)
    nodes: list[DescribeQuorumNode] = array(DescribeQuorumNode, since=2)
