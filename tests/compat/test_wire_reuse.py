"""One connection used for many things in turn: what the broker remembers of it never leads astray."""

from __future__ import annotations

from uuid import UUID

from asking.batches import Line, batch_of, lines
from asking.connection import Connection
from asking.requests import create_topic, fetch, produce, produce_request

from penstock.errors import ErrorCode
from penstock.kafka.records.record import decode_records
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BATCH = batch_of(lines("one"))


def send(
    connection: Connection, topic: str, version: int = 9, partition: int = 0, topic_id: UUID | None = None
) -> PartitionProduceResponse:
    request = produce_request(topic, BATCH, partition=partition, topic_id=topic_id)
    return connection.ask(request, version, ProduceResponse).responses[0].partition_responses[0]


def test_batches_go_where_each_request_says(connection: Connection, topic: str) -> None:
    """Topics and partitions in turn, at several versions, on one connection."""
    other = f"{topic}-other"
    ids = {name: create_topic(connection, name, partitions=2) for name in (topic, other)}
    expected = dict.fromkeys([(name, partition) for name in ids for partition in (0, 1)], 0)
    for version in (3, 9, 9, 13, 13, 7, 13):
        for name, partition in expected:
            answer = send(connection, name, version, partition, ids[name])
            assert (answer.error_code, answer.base_offset) == (0, expected[name, partition])
            expected[name, partition] += 1


def test_records_of_many_sizes_follow_each_other(connection: Connection, topic: str) -> None:
    """Requests of the same kind but of another length each: all come back as they were sent."""
    create_topic(connection, topic)
    values = [bytes([65 + size % 26]) * size for size in (1, 120, 127, 128, 16_000, 16_384, 3, 70_000, 0, 1)]
    for offset, value in enumerate(values):
        assert produce(connection, topic, batch_of([Line(value)])).base_offset == offset
    for offset, value in enumerate(values):
        records = fetch(connection, topic, offset).records
        assert records is not None
        assert next(decode_records(records)).value == value


def test_a_topic_deleted_between_two_requests_is_gone(connection: Connection, topic: str) -> None:
    """And one of the same name made anew starts at offset 0, not where the old one ended."""
    create_topic(connection, topic)
    for offset in range(3):
        assert send(connection, topic).base_offset == offset
    deleted = connection.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 5, DeleteTopicsResponse)
    assert deleted.responses[0].error_code == 0
    code = send(connection, topic).error_code
    # Kafka's broker may still lead the partition for a moment after its controller has deleted it.
    while code == 0:
        code = send(connection, topic).error_code
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    create_topic(connection, topic)
    answer = send(connection, topic)
    assert (answer.error_code, answer.base_offset) == (0, 0)


def test_a_setting_changed_between_two_requests_holds_for_the_second(connection: Connection, topic: str) -> None:
    """A smaller limit for batches is felt by a client that has been writing all the time."""
    create_topic(connection, topic)
    for _ in range(3):
        assert send(connection, topic).error_code == 0
    change = AlterableConfig(name="max.message.bytes", config_operation=0, value=str(len(BATCH) - 1))
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert connection.ask(request, 1, IncrementalAlterConfigsResponse).responses[0].error_code == 0
    code = send(connection, topic).error_code
    while code == 0:  # Kafka's broker hears of it a moment after its controller has answered
        code = send(connection, topic).error_code
    assert code == ErrorCode.MESSAGE_TOO_LARGE


def test_one_request_for_many_partitions_is_answered_for_each(connection: Connection, topic: str) -> None:
    """Good, broken and unknown ones in one request; a good one does not suffer from its neighbours."""
    create_topic(connection, topic, partitions=3)
    broken = bytearray(BATCH)
    broken[-1] ^= 1
    parts = [(0, BATCH), (1, broken), (9, BATCH), (2, BATCH)]
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=i, records=b) for i, b in parts])
    unknown = TopicProduceData(name="unknown", partition_data=[PartitionProduceData(index=0, records=BATCH)])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data, unknown])
    answer = connection.ask(request, 9, ProduceResponse)
    codes = {
        (given.name, part.index): part.error_code for given in answer.responses for part in given.partition_responses
    }
    assert codes == {
        (topic, 0): ErrorCode.NONE,
        (topic, 1): ErrorCode.CORRUPT_MESSAGE,
        (topic, 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (topic, 2): ErrorCode.NONE,
        ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
