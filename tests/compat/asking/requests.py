"""The requests that most raw tests need, with the least to say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from uuid import UUID

from asking.connection import DEADLINE_S, Connection
from penstock.kafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.ports import Buffer

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
COORDINATOR_LOAD_IN_PROGRESS = 14


def create_topic(
    connection: Connection, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> UUID:
    """A new topic, ready to be written to; its id."""
    settings = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    (made,) = connection.ask(CreateTopicsRequest(topics=[topic]), 7, CreateTopicsResponse).topics
    assert made.error_code == 0, made
    # Kafka's controller answers before its broker has opened every log.
    deadline = time.monotonic() + DEADLINE_S
    while any(list_offset(connection, name, LATEST, partition)[0] for partition in range(partitions)):
        assert time.monotonic() < deadline, f"{name} does not become ready"
    return made.topic_id


def produce_request(
    topic: str, batch: Buffer | None, *, partition: int = 0, acks: int = -1, topic_id: UUID | None = None
) -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    if topic_id is not None:
        data.topic_id = topic_id
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])


def produce(connection: Connection, topic: str, batch: Buffer | None, partition: int = 0) -> PartitionProduceResponse:
    """Send one batch with acks=all; what became of it."""
    request = produce_request(topic, batch, partition=partition)
    (answer,) = connection.ask(request, 12, ProduceResponse).responses
    return answer.partition_responses[0]


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50_000_000,
    partition_max_bytes: int = 10_000_000,
    topic_id: UUID | None = None,
    leader_epoch: int = -1,
) -> FetchRequest:
    wanted = FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=partition_max_bytes,
        current_leader_epoch=leader_epoch,
    )
    named = FetchTopic(topic=topic, partitions=[wanted])
    if topic_id is not None:
        named.topic_id = topic_id
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=[named])


def fetch(
    connection: Connection, topic: str, offset: int, *, partition: int = 0, leader_epoch: int = -1
) -> PartitionData:
    """What stands from this offset on, without waiting for more."""
    request = fetch_request(topic, offset, partition=partition, leader_epoch=leader_epoch)
    (answer,) = connection.ask(request, 12, FetchResponse).responses
    return answer.partitions[0]


def list_offset(
    connection: Connection, topic: str, timestamp: int, partition: int = 0, leader_epoch: int = -1
) -> tuple[int, int, int]:
    """Error code, timestamp and offset that ListOffsets finds."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp, current_leader_epoch=leader_epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    found = connection.ask(request, 8, ListOffsetsResponse).topics[0].partitions[0]
    return found.error_code, found.timestamp, found.offset


def new_producer(connection: Connection) -> tuple[int, int]:
    """A producer id and epoch from the broker."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        given = connection.ask(InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse)
        # Kafka's first answer after its start: it has just asked its controller for a block of ids.
        if given.error_code != COORDINATOR_LOAD_IN_PROGRESS:
            assert given.error_code == 0
            return given.producer_id, given.producer_epoch
    raise AssertionError("no producer id was given")
