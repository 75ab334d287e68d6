"""Clients: answers in the order of the requests, limits for each and for all, and only the one that errs is closed."""

from __future__ import annotations

import random

import pytest
from stage.batches import batch
from stage.nodes import Stage, ack_of, fetch_request, produce_request

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.header import encode_request_header
from penstock.kafka.wire.message import encode
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.queue.core.counters import render_metrics
from penstock.queue.core.events import Received, Reply

KIB = 1024


def test_answers_come_in_the_order_of_the_requests() -> None:
    """Though the second could be answered long before the first."""
    stage = Stage()
    stage.topic()
    first = stage.send(fetch_request(0, wait_ms=60_000), 12)
    second = stage.send(MetadataRequest([]), 12)
    third = stage.send(fetch_request(0), 12)
    assert stage.answers() == []
    stage.connect(2)
    stage.produce(client=2)
    assert [correlation for correlation, _ in stage.answers()] == [first, second, third]


def test_one_step_gives_one_reply_a_client() -> None:
    """All answers of a wake-up leave together."""
    stage = Stage()
    frames = [stage.frame(MetadataRequest([]), 12) for _ in range(5)]
    effects = stage.step(*(Received(1, memoryview(bytearray(frame))) for frame in frames))
    assert len([effect for effect in effects if isinstance(effect, Reply)]) == 1
    assert len(stage.answers()) == 5


def test_a_client_with_too_much_unanswered_is_paused_and_taken_up_again() -> None:
    """What it sent meanwhile is kept in order; the others are not touched."""
    stage = Stage(inflight_bytes_max_connection=4 * KIB)
    stage.topic()
    stage.connect(2)
    for _ in range(6):
        stage.send(produce_request(batch([b"x" * 2000])), 12)
    assert stage.pauses == [1]
    assert len(stage.node.connections[1].backlog) == 4
    stage.send(MetadataRequest([]), 12, 2)
    assert len(stage.answers(2)) == 1
    stage.end_syncs()
    assert [ack_of(answer).base_offset for _, answer in stage.answers()] == list(range(6))
    assert stage.resumes == [1]
    assert stage.node.room.held_bytes == 0


def test_all_clients_together_are_bounded() -> None:
    """Each within its own limit, but too much in all: who holds much is not read until answers have left."""
    stage = Stage(inflight_bytes_max=1 << 20)
    stage.topic()
    for client in range(2, 6):
        stage.connect(client)
        stage.send(produce_request(batch([b"x" * 400_000])), 12, client)
    stage.send(produce_request(batch()), 12, 2)
    assert stage.pauses == [2]
    stage.end_syncs()
    assert stage.resumes == [2]
    assert [len(stage.answers(client)) for client in range(2, 6)] == [2, 1, 1, 1]


def test_readers_that_take_nothing_do_not_starve_the_others() -> None:
    """With all memory held by slow readers, producers are served, and fetches are answered empty in time."""
    stage = Stage(inflight_bytes_max=1 << 20)
    stage.topic()
    stage.produce(batch([b"x" * 600_000]))
    for client in (2, 3):
        stage.connect(client)
        stage.send(fetch_request(0), 12, client)
    assert stage.node.room.is_full
    stage.connect(4)
    assert ack_of(stage.ask(produce_request(batch()), 12, 4)).base_offset == 1
    stage.send(fetch_request(0, wait_ms=50), 12, 4)
    stage.wait(50)
    ((_, answer),) = stage.answers(4)
    assert not answer.responses[0].partitions[0].records
    stage.drained(2)
    assert stage.fetch(0, client=4).responses[0].partitions[0].records


def test_a_large_answer_counts_until_the_client_has_taken_it() -> None:
    """A slow reader cannot make the broker hold one answer after the other."""
    stage = Stage(inflight_bytes_max_connection=300_000)
    stage.topic()
    stage.produce(batch([b"x" * 200_000]))
    for _ in range(5):
        stage.send(fetch_request(0), 12)
    replies = [reply for reply in stage.seen(Reply) if reply.is_large]
    assert 0 < len(replies) <= 2
    assert stage.pauses == [1]
    for _ in range(5):
        stage.drained(1)
    assert len(stage.answers()) == 5
    assert (stage.resumes[-1], stage.node.room.held_bytes) == (1, 0)


def test_a_client_that_leaves_gives_everything_back() -> None:
    """Unanswered requests, backlog, large answers: nothing is held for somebody who is gone."""
    stage = Stage(inflight_bytes_max_connection=4 * KIB)
    stage.topic()
    for _ in range(6):
        stage.send(produce_request(batch([b"x" * 2000])), 12)
    stage.drop(1)
    stage.end_syncs()
    assert (stage.node.room.held_bytes, stage.node.connections) == (0, {})
    stage.connect(2)
    assert ack_of(stage.produce(client=2)).error_code == 0


@pytest.mark.parametrize("key", [key for key in APIS if key != ApiKey.API_VERSIONS])
def test_a_version_that_is_not_served_closes_the_connection(key: int) -> None:
    """As Kafka does; nobody knows how such a request reads."""
    for version in (-1, APIS[key].max_version + 1):
        stage = Stage()
        stage.send_raw(encode_request_header(key, version, 1, "c") + bytes(50))
        assert stage.closed == [1]
        assert stage.node.counters.closed == {"protocol": 1}


def test_api_versions_of_the_future_are_answered_in_version_0() -> None:
    """KIP-511: the client learns what it may ask."""
    stage = Stage()
    frame = stage.frame(ApiVersionsRequest("x", "1"), 4)
    stage._asked[1] = (ApiKey.API_VERSIONS, 0)
    stage.send_raw(frame[:2] + (9).to_bytes(2, "big") + frame[4:])
    ((_, answer),) = stage.answers()
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert {entry.api_key for entry in answer.api_keys} == set(APIS)


def test_a_closed_client_still_gets_what_was_answered_before() -> None:
    """The error comes after the good requests."""
    stage = Stage()
    frames = [stage.frame(MetadataRequest([]), 12), b"\x7f\xff" + bytes(20), stage.frame(MetadataRequest([]), 12)]
    stage.step(*(Received(1, memoryview(bytearray(frame))) for frame in frames))
    assert len(stage.answers()) == 1
    assert stage.closed == [1]


def test_a_request_larger_than_any_that_makes_sense_is_refused() -> None:
    """Only Produce may be large: decoded, the others take many times their size."""
    stage = Stage(request_bytes_max=2 * KIB)
    stage.send(MetadataRequest([MetadataRequestTopic(name="x" * 100) for _ in range(30)]), 12)
    assert stage.closed == [1]


def test_too_many_waiting_changes_close_who_sends_more() -> None:
    """metadata_queue_max bounds what waits for the one being written."""
    stage = Stage(metadata_queue_max=3)
    for number in range(8):
        client = stage.connect(10 + number)
        stage.send(CreateTopicsRequest([CreatableTopic(f"t{number}", 1, 1)]), 7, client)
    assert stage.closed == [14, 15, 16, 17]
    stage.end_syncs()
    assert list(stage.node.catalog.topics) == ["t0", "t1", "t2", "t3"]


def test_garbage_closes_its_sender_and_changes_nothing() -> None:
    """For every API and version: an answer or a closed connection, never an exception."""
    chance = random.Random(3)
    stage = Stage(auto_create_topics=False)
    stage.topic()
    stage.produce(batch([b"kept"]))
    client = 10
    for key, api in APIS.items():
        for version in range(api.min_version, api.max_version + 1):
            head = encode_request_header(key, version, 1, "c")
            body = encode(api.request(), version)
            for _ in range(6):
                junk = chance.choice([chance.randbytes(chance.randrange(60)), body[: chance.randrange(len(body) + 1)]])
                client += 1
                stage.connect(client)
                stage._asked[1] = (key, version)
                stage.send_raw(head + junk, client)
                stage.end_syncs()
                stage.drop(client)
    assert list(stage.node.catalog.topics) == ["rain"]
    assert stage.fetch(0).responses[0].partitions[0].high_watermark == 1
    assert stage.node.room.held_bytes == 0


def test_frames_shorter_than_a_header_close_the_connection() -> None:
    for size in range(9):
        stage = Stage()
        stage.send_raw(bytes(size))
        assert stage.closed == [1]


def test_bytes_from_a_client_nobody_knows_are_ignored() -> None:
    """A frame may still be on its way when its connection is closed."""
    stage = Stage()
    assert stage.step(Received(99, memoryview(bytearray(b"late")))) == []


def test_clients_are_counted_by_what_they_say_they_are() -> None:
    """KIP-511, for metrics; strangers cannot fill the memory with names."""
    stage = Stage()
    for name, version in (("kcat", "1.7"), ("kcat", "1.7"), ("x" * 65, "1"), ("no good", "1")):
        stage.send(ApiVersionsRequest(name, version), 4)
    stage.send(ApiVersionsRequest(), 0)
    counted = stage.node.counters.software
    assert counted == {("kcat", "1.7"): 2, ("other", "other"): 1, ("unknown", "unknown"): 1}
    for number in range(1_000):
        stage.send(ApiVersionsRequest("stranger", str(number)), 4)
    assert len(counted) <= 101
    assert sum(counted.values()) == 1_004
    assert 'clients_total{software="kcat",version="1.7"} 2\n' in render_metrics(stage.node.counters, {})
