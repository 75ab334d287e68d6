"""Topics for one trial: made, asked and removed over the wire."""

from __future__ import annotations

import time
from collections.abc import Mapping

from bench.wire_client import WireClient, frame
from penstock.errors import ErrorCode, PeerError, PenstockError
from penstock.kafka.records.record import encode_values
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import encode
from penstock.kafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.kafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

PRODUCE_VERSION = 9
_DEADLINE_S = 120.0
_RETRY_S = 0.002
_LATEST = -1
_NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def create_topic(address: str, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Make a topic, and wait until its last partition takes records."""
    request = create_request(name, partitions, settings)
    with WireClient(address) as client:
        (result,) = client.ask(ApiKey.CREATE_TOPICS, 5, request, CreateTopicsResponse).topics
    if result.error_code != ErrorCode.NONE:
        raise PenstockError(f"topic {name} was not made: {result.error_message} (error {result.error_code})")
    _wait_for_leader(address, name, partitions - 1)


def create_request(name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> CreateTopicsRequest:
    """What asks for one topic."""
    configs = [CreatableTopicConfig(key, value) for key, value in (settings or {}).items()]
    return CreateTopicsRequest([CreatableTopic(name, partitions, 1, [], configs)], 120_000)


def delete_topic(address: str, name: str) -> None:
    """Remove a topic and its records."""
    with WireClient(address) as client:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000)
        (result,) = client.ask(ApiKey.DELETE_TOPICS, 4, request, DeleteTopicsResponse).responses
    if result.error_code != ErrorCode.NONE:
        raise PenstockError(f"topic {name} was not removed (error {result.error_code})")


def end_offset(address: str, name: str, partition: int = 0) -> int:
    """The offset after the last record a consumer can see; PeerError if the partition does not answer."""
    topics = [ListOffsetsTopic(name, [ListOffsetsPartition(partition, -1, _LATEST)])]
    with WireClient(address) as client:
        request = ListOffsetsRequest(-1, 0, topics)
        answer = client.ask(ApiKey.LIST_OFFSETS, 6, request, ListOffsetsResponse).topics[0].partitions[0]
    if answer.error_code != ErrorCode.NONE:
        raise PeerError(f"no end offset of {name}-{partition}: error {answer.error_code}")
    return answer.offset


def produce_request(topic: str, partition: int, value: bytes) -> ProduceRequest:
    """One record in a batch of its own, acks=all, not idempotent."""
    batch = encode_values([value], int(time.time() * 1000))
    return ProduceRequest(
        None, -1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, batch)])]
    )


def produce_frame(topic: str, partition: int, value: bytes) -> bytes:
    """The same, ready to be sent."""
    return frame(ApiKey.PRODUCE, PRODUCE_VERSION, encode(produce_request(topic, partition, value), PRODUCE_VERSION))


def first_ack(address: str, topic: str, partition: int = 0) -> float:
    """Produce one record, again while the partition has no leader yet; the monotonic time of the ack."""
    with WireClient(address) as client:
        return _ack(client, topic, partition)


def use_partitions(address: str, topic: str, partitions: int) -> None:
    """One acknowledged record in each partition."""
    with WireClient(address) as client:
        for partition in range(partitions):
            _ack(client, topic, partition)


def _ack(client: WireClient, topic: str, partition: int) -> float:
    deadline = time.monotonic() + _DEADLINE_S
    request = produce_request(topic, partition, bytes(100))
    while True:
        answer = client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request, ProduceResponse)
        acked_at = time.monotonic()
        code = answer.responses[0].partition_responses[0].error_code
        if code == ErrorCode.NONE:
            return acked_at
        if code not in _NOT_YET or acked_at > deadline:
            raise PenstockError(f"{topic}-{partition} did not take a record: error {code}")
        time.sleep(_RETRY_S)


def _wait_for_leader(address: str, name: str, partition: int) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            end_offset(address, name, partition)
            return
        except PeerError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_S)
