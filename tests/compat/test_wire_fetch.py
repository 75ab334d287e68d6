"""Fetch: how much, how long, and from where."""

from __future__ import annotations

import time

import pytest
from asking.batches import batch_of, lines
from asking.connection import Connection
from asking.requests import create_topic, fetch, fetch_request, produce

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import decode_header
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.kafka.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

LONG_WAIT_MS = 20_000
BATCH = batch_of(lines("x" * 100, "y" * 100))


def one(answer: FetchResponse) -> PartitionData:
    return answer.responses[0].partitions[0]


def received(answer: FetchResponse) -> list[int]:
    """How many bytes of records came for each partition, in the order of the answer."""
    return [len(part.records or b"") for topic in answer.responses for part in topic.partitions]


def batches_in(part: PartitionData) -> list[int]:
    """Base offsets of the batches that came whole."""
    data, at, found = bytes(part.records or b""), 0, []
    while at + 61 <= len(data):
        header = decode_header(data, at)
        if at + header.size > len(data):
            break
        found.append(header.base_offset)
        at += header.size
    return found


@pytest.fixture
def filled(connection: Connection, topic: str) -> str:
    """Four batches of two records in partition 0, one in partition 1."""
    create_topic(connection, topic, partitions=2)
    for _ in range(4):
        assert produce(connection, topic, BATCH).error_code == 0
    assert produce(connection, topic, BATCH, partition=1).error_code == 0
    return topic


def test_a_waiting_fetch_is_answered_by_the_produce_it_waits_for(
    connection: Connection, broker_address: str, topic: str
) -> None:
    """It does not wait for its time to end once there is enough to read."""
    create_topic(connection, topic)
    began = time.monotonic()
    with Connection(broker_address) as reader:
        reader.send(fetch_request(topic, 0, max_wait_ms=LONG_WAIT_MS), 12)
        assert produce(connection, topic, BATCH).error_code == 0
        _, answer = reader.receive(FetchRequest, 12)
    assert isinstance(answer, FetchResponse)
    assert batches_in(one(answer)) == [0]
    assert time.monotonic() - began < LONG_WAIT_MS / 1000 / 2


def test_a_fetch_waits_for_min_bytes(connection: Connection, broker_address: str, topic: str) -> None:
    """One batch is not enough; the second one ends the wait, and both are there."""
    create_topic(connection, topic)
    with Connection(broker_address) as reader:
        reader.send(fetch_request(topic, 0, max_wait_ms=LONG_WAIT_MS, min_bytes=len(BATCH) + 1), 12)
        for _ in range(2):
            assert produce(connection, topic, BATCH).error_code == 0
        _, answer = reader.receive(FetchRequest, 12)
    assert isinstance(answer, FetchResponse)
    assert batches_in(one(answer)) == [0, 2]


def test_a_fetch_ends_after_max_wait(connection: Connection, filled: str) -> None:
    """Too little is answered with what there is, not before its time."""
    began = time.monotonic()
    request = fetch_request(filled, 6, max_wait_ms=300, min_bytes=100_000)
    answer = connection.ask(request, 12, FetchResponse)
    assert 0.29 < time.monotonic() - began < 10
    assert batches_in(one(answer)) == [6]


def test_nothing_new_is_an_empty_answer(connection: Connection, filled: str) -> None:
    """At the end of the log, without waiting."""
    part = fetch(connection, filled, 8)
    assert (part.error_code, part.high_watermark, len(part.records or b"")) == (0, 8, 0)


def test_an_error_does_not_wait(connection: Connection, filled: str) -> None:
    """A fetch with one bad partition is answered at once, so that the client can act."""
    began = time.monotonic()
    request = fetch_request(filled, 99, max_wait_ms=LONG_WAIT_MS)
    answer = connection.ask(request, 12, FetchResponse)
    assert one(answer).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert time.monotonic() - began < LONG_WAIT_MS / 1000 / 2


def test_partition_max_bytes_bounds_a_partition_but_for_its_first_batch(connection: Connection, filled: str) -> None:
    """Progress is always possible: the first batch comes whole even if it is larger than the limit."""
    for limit, expected in ((1, [0]), (len(BATCH), [0]), (2 * len(BATCH), [0, 2]), (10_000_000, [0, 2, 4, 6])):
        answer = connection.ask(fetch_request(filled, 0, partition_max_bytes=limit), 12, FetchResponse)
        assert batches_in(one(answer)) == expected, limit


def test_max_bytes_bounds_the_answer_but_for_its_first_batch(connection: Connection, filled: str) -> None:
    """The first partition that has something gives at least one batch, the others fill what is left."""
    wanted = [FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=10_000_000) for p in (0, 1)]

    def ask(max_bytes: int) -> list[int]:
        topics = [FetchTopic(topic=filled, partitions=wanted)]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=max_bytes, topics=topics)
        return received(connection.ask(request, 11, FetchResponse))

    assert ask(1) == [len(BATCH), 0]
    assert ask(4 * len(BATCH)) == [4 * len(BATCH), 0]
    assert ask(5 * len(BATCH)) == [4 * len(BATCH), len(BATCH)]


def test_a_fetch_inside_a_batch_gives_the_whole_batch(connection: Connection, filled: str) -> None:
    """Clients drop what they did not ask for; the bytes stay as they were written."""
    part = fetch(connection, filled, 3)
    assert batches_in(part)[0] == 2


def test_min_bytes_zero_never_waits(connection: Connection, filled: str) -> None:
    """Nothing is enough."""
    began = time.monotonic()
    request = fetch_request(filled, 8, max_wait_ms=LONG_WAIT_MS, min_bytes=0)
    assert received(connection.ask(request, 12, FetchResponse)) == [0]
    assert time.monotonic() - began < LONG_WAIT_MS / 1000 / 2


def test_a_waiting_fetch_whose_topic_is_deleted_is_answered(
    connection: Connection, broker: str, broker_address: str, filled: str
) -> None:
    """Ours says at once that the topic is gone; Kafka may wait for the end of the time it was given."""
    wait_ms = LONG_WAIT_MS if broker == "penstock" else 500
    with Connection(broker_address) as reader:
        reader.send(fetch_request(filled, 8, max_wait_ms=wait_ms), 12)
        # On the same connection as the fetch nothing would be read before its answer.
        connection.ask(DeleteTopicsRequest(topic_names=[filled], timeout_ms=10_000), 5, DeleteTopicsResponse)
        _, answer = reader.receive(FetchRequest, 12)
    assert isinstance(answer, FetchResponse)
    gone = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert one(answer).error_code in gone


def test_fetch_sessions(connection: Connection, broker: str, filled: str) -> None:
    """Kafka remembers what a client reads (KIP-227); ours gives session 0, which says: name all of it each time."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(min_bytes=1, session_epoch=0, topics=[FetchTopic(topic=filled, partitions=[wanted])])
    first = connection.ask(request, 12, FetchResponse)
    assert first.error_code == 0
    assert batches_in(one(first))[0] == 0
    assert (first.session_id == 0) == (broker == "penstock")


def test_a_session_that_nobody_knows_is_refused(connection: Connection, filled: str) -> None:
    """So that the client starts over."""
    request = FetchRequest(session_id=12345, session_epoch=1, forgotten_topics_data=[ForgottenTopic(topic=filled)])
    answer = connection.ask(request, 12, FetchResponse)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert answer.responses == []
