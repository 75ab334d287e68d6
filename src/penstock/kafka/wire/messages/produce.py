"""Produce: append batches to partitions."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, data, int16, int32, int64, string, struct, uuid
from penstock.kafka.wire.message import Message, Struct
from penstock.ports import Buffer


@dataclass(slots=True)
class PartitionProduceData(Struct):
    index: int = int32()
    records: Buffer | None = data.or_null()


@dataclass(slots=True)
class TopicProduceData(Struct):
    name: str = string(until=12, ignorable=True)
    topic_id: UUID = uuid(since=13, ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


@dataclass(slots=True)
class ProduceRequest(Message):
    """Batches to append, by topic and partition."""

    versions = (3, 13)
    flexible = 9

    transactional_id: str | None = string.or_null()
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


@dataclass(slots=True)
class BatchIndexAndErrorMessage(Struct):
    batch_index: int = int32(since=8)
    batch_index_error_message: str | None = string.or_null(since=8)


@dataclass(slots=True)
class LeaderIdAndEpoch(Struct):
    leader_id: int = int32(default=-1, since=10)
    leader_epoch: int = int32(default=-1, since=10)


@dataclass(slots=True)
class PartitionProduceResponse(Struct):
    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1, ignorable=True)
    log_start_offset: int = int64(default=-1, since=5, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(BatchIndexAndErrorMessage, since=8, ignorable=True)
    error_message: str | None = string.or_null(since=8, ignorable=True)
    current_leader: LeaderIdAndEpoch = struct(LeaderIdAndEpoch, since=10, tag=0)


@dataclass(slots=True)
class TopicProduceResponse(Struct):
    name: str = string(until=12, ignorable=True)
    topic_id: UUID = uuid(since=13, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


@dataclass(slots=True)
class NodeEndpoint(Struct):
    node_id: int = int32(since=10)
    host: str = string(since=10)
    port: int = int32(since=10)
    rack: str | None = string.or_null(since=10)


@dataclass(slots=True)
class ProduceResponse(Message):
    """Where each batch went, or why it did not."""

    versions = (3, 13)
    flexible = 9

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, since=10, tag=0)
