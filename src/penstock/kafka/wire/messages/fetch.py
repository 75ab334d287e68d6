"""Fetch: read batches from partitions."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, array_or_null, data, int8, int16, int32, int64, string, struct, uuid
from penstock.kafka.wire.message import Message, Struct
from penstock.ports import Buffer


@dataclass(slots=True)
class ReplicaState(Struct):
    replica_id: int = int32(default=-1, since=15)
    replica_epoch: int = int64(default=-1, since=15)


@dataclass(slots=True)
class FetchPartition(Struct):
    partition: int = int32()
    current_leader_epoch: int = int32(default=-1, since=9, ignorable=True)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(default=-1, since=12)
    log_start_offset: int = int64(default=-1, since=5, ignorable=True)
    partition_max_bytes: int = int32()
    replica_directory_id: UUID = uuid(since=17, tag=0, ignorable=True)
    high_watermark: int = int64(default=2**63 - 1, since=18, tag=1, ignorable=True)


@dataclass(slots=True)
class FetchTopic(Struct):
    topic: str = string(until=12, ignorable=True)
    topic_id: UUID = uuid(since=13, ignorable=True)
    partitions: list[FetchPartition] = array(FetchPartition)


@dataclass(slots=True)
class ForgottenTopic(Struct):
    topic: str = string(since=7, until=12, ignorable=True)
    topic_id: UUID = uuid(since=13, ignorable=True)
    partitions: list[int] = array(int32, since=7)


@dataclass(slots=True)
class FetchRequest(Message):
    """Offsets to read from, by topic and partition, within a fetch session."""

    versions = (4, 18)
    flexible = 12

    cluster_id: str | None = string.or_null(since=12, tag=0, ignorable=True)
    replica_id: int = int32(default=-1, until=14)
    replica_state: ReplicaState = struct(ReplicaState, since=15, tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2**31 - 1, ignorable=True)
    isolation_level: int = int8(ignorable=True)
    session_id: int = int32(since=7, ignorable=True)
    session_epoch: int = int32(default=-1, since=7, ignorable=True)
    topics: list[FetchTopic] = array(FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(ForgottenTopic, since=7)
    rack_id: str = string(since=11, ignorable=True)


@dataclass(slots=True)
class EpochEndOffset(Struct):
    epoch: int = int32(default=-1, since=12)
    end_offset: int = int64(default=-1, since=12)


@dataclass(slots=True)
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1, since=12)
    leader_epoch: int = int32(default=-1, since=12)


@dataclass(slots=True)
class SnapshotId(Struct):
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@dataclass(slots=True)
class AbortedTransaction(Struct):
    producer_id: int = int64()
    first_offset: int = int64()


@dataclass(slots=True)
class PartitionData(Struct):
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1, ignorable=True)
    log_start_offset: int = int64(default=-1, since=5, ignorable=True)
    diverging_epoch: EpochEndOffset = struct(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = struct(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = array_or_null(AbortedTransaction, ignorable=True)
    preferred_read_replica: int = int32(default=-1, since=11)
    records: Buffer | None = data.or_null()


@dataclass(slots=True)
class FetchableTopicResponse(Struct):
    topic: str = string(until=12, ignorable=True)
    topic_id: UUID = uuid(since=13, ignorable=True)
    partitions: list[PartitionData] = array(PartitionData)


@dataclass(slots=True)
class NodeEndpoint(Struct):
    node_id: int = int32(since=16)
    host: str = string(since=16)
    port: int = int32(since=16)
    rack: str | None = string.or_null(since=16)


@dataclass(slots=True)
class FetchResponse(Message):
    """Batches read, by topic and partition."""

    versions = (4, 18)
    flexible = 12

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16(since=7, ignorable=True)
    session_id: int = int32(since=7)
    responses: list[FetchableTopicResponse] = array(FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=16, tag=0)
