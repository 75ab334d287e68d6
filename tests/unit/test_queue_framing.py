"""A batch whose records lie about their framing is refused before anything of it is stored."""

from __future__ import annotations

import pytest
from stage.batches import GZIP, LZ4, SNAPPY, ZSTD, batch, raw_batch, record, squeeze
from stage.nodes import Stage, ack_of, produce_request, records_of

from penstock.errors import ErrorCode
from penstock.kafka.records.record import encode_varint
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.kafka.wire.messages.produce import PartitionProduceData
from penstock.queue.core.events import Open, Received
from penstock.queue.handlers import produce

ONE = record(0, 0, None, b"v")
BODIES = {
    "count larger": (ONE, 2),
    "count smaller": (ONE + record(1, 0, None, b"w"), 1),
    "record longer than the batch": (encode_varint(500) + ONE[1:], 1),
    "no headers": (record(0, 0, None, b"v", b""), 1),
    "no records": (b"", 1),
}
LIES = {name: raw_batch(body, count) for name, (body, count) in BODIES.items()} | {
    f"{name}, codec {codec}": raw_batch(squeeze(codec, body), count, codec=codec)
    for name, (body, count) in BODIES.items()
    for codec in (GZIP, SNAPPY, LZ4, ZSTD)
}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests that were decoded, in place of compared with earlier ones."""
    calls: list[object] = []
    real = produce.decode_produce
    monkeypatch.setattr(produce, "decode_produce", lambda *given: (calls.append(given), real(*given))[1])
    return calls


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("before", [0, 3])
def test_a_lie_is_refused_in_both_ways(lie: str, before: int, decoded: list[object]) -> None:
    """Of the first request of a client, and of one like those before it."""
    stage = Stage()
    stage.topic()
    for _ in range(before):
        stage.produce()
    assert len(decoded) == min(before, 1)

    ack = ack_of(stage.produce(LIES[lie]))

    assert ErrorCode(ack.error_code) is ErrorCode.INVALID_RECORD
    assert ack.error_message
    assert records_of(stage.fetch(0)).count(b"drop") == before
    assert ack_of(stage.produce()).base_offset == before


@pytest.mark.parametrize("before", [0, 3])
def test_a_topic_may_go_without_the_check(before: int) -> None:
    stage = Stage()
    stage.topic(penstock_check_records="false")
    for _ in range(before):
        stage.produce()
    for number, lie in enumerate(LIES.values()):
        answer = ack_of(stage.produce(lie))
        assert (answer.error_code, answer.base_offset >= before + number) == (0, True)


def test_the_setting_counts_from_the_next_request(decoded: list[object]) -> None:
    """A client whose requests are recognised sees the change as well."""
    stage = Stage()
    stage.topic(penstock_check_records="false")
    lie = LIES["count larger"]
    assert [ack_of(stage.produce(each)).error_code for each in (batch(), lie, lie)] == [0, 0, 0]
    assert len(decoded) == 1
    stage.configure("rain", {"penstock.check.records": "true"})
    assert ack_of(stage.produce(lie)).error_code == ErrorCode.INVALID_RECORD


LARGE = batch([bytes(1000)] * 5, codec=GZIP)  # opens to more than the loop of this stage opens in a step
LARGE_LIE = raw_batch(squeeze(GZIP, bytes(5000)), 5, codec=GZIP)
BOMB = raw_batch(squeeze(GZIP, bytes(50_000)), 5, codec=GZIP)


def small_stage(**settings: int) -> Stage:
    """A node whose loop opens 3,000 bytes a step, and whose threads open 20,000 a batch."""
    stage = Stage(opened_on_loop_bytes_max=3_000, opened_bytes_max=20_000, **settings)
    stage.topic(partitions=3)
    return stage


def opens(stage: Stage) -> list[Open]:
    return stage.seen(Open)


def acks(stage: Stage, client: int = 1) -> list[tuple[int, int]]:
    """Code and offset of the answers since the last call."""
    stage.end_syncs()
    parts = [ack_of(answer) for _, answer in stage.answers(client)]
    return [(part.error_code, part.base_offset) for part in parts]


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_small_compressed_batches_are_opened_at_once(codec: int, before: int) -> None:
    stage = small_stage()
    for _ in range(before):
        stage.produce()
    assert ack_of(stage.produce(batch([b"v"] * 4, codec=codec))).base_offset == before
    assert not opens(stage)


@pytest.mark.parametrize("before", [0, 3])
def test_a_large_batch_is_opened_beside_the_loop(before: int) -> None:
    """Later requests of its connection wait for it, also after it; those of others do not."""
    stage = small_stage()
    stage.connect(2)
    for client in (1, 2):
        for _ in range(before):
            stage.send(produce_request(batch()), 12, client)
            stage.end_syncs()
        stage.answers(client)
    stage.send(produce_request(LARGE), 12)
    stage.send(produce_request(batch()), 12)
    stage.send(produce_request(batch()), 12)
    stage.send(produce_request(batch()), 12, client=2)
    (job,) = opens(stage)
    assert [bytes(each) for each in job.batches] == [bytes(LARGE)]
    assert acks(stage, 2) == [(0, 2 * before)]
    assert acks(stage) == []
    assert stage.pauses == [1]
    stage.end_opening(job)
    assert acks(stage) == [(0, 2 * before + 1), (0, 2 * before + 6), (0, 2 * before + 7)]
    assert stage.resumes == [1]
    assert stage.node.room.held_bytes == 0


@pytest.mark.parametrize(
    ("sent", "code", "why"),
    [
        (LARGE_LIE, ErrorCode.INVALID_RECORD, "record 0"),
        (BOMB, ErrorCode.MESSAGE_TOO_LARGE, "opened_bytes_max"),
        (raw_batch(bytes(9_000), 3), ErrorCode.INVALID_RECORD, "record 0"),
    ],
)
def test_a_large_lie_is_refused(sent: bytearray, code: ErrorCode, why: str) -> None:
    """One that lies, one that opens to too much, and one that is large without compression."""
    stage = small_stage()
    stage.send(produce_request(sent), 12)
    stage.send(produce_request(batch()), 12)
    (job,) = opens(stage)
    stage.end_opening(job)
    stage.end_syncs()
    (_, refused), (_, stored) = stage.answers()
    assert ack_of(refused).error_code == code
    assert why in (ack_of(refused).error_message or "")
    assert ack_of(stored).base_offset == 0


def test_every_batch_of_a_request_gets_its_own_answer() -> None:
    """Small and large, sound and not, in one request; nothing of it is stored before all are opened."""
    stage = small_stage()
    request = produce_request(LARGE_LIE)
    small_lie = raw_batch(squeeze(ZSTD, ONE), 2, codec=ZSTD)
    request.topic_data[0].partition_data += [
        PartitionProduceData(1, LARGE),
        PartitionProduceData(2, small_lie),
    ]
    stage.send(request, 12)
    (job,) = opens(stage)
    assert len(job.batches) == 3  # a step that met a batch too large opens nothing more
    assert not stage.syncs
    stage.end_opening(job)
    stage.end_syncs()
    ((_, answer),) = stage.answers()
    found = [(part.error_code, part.base_offset) for part in answer.responses[0].partition_responses]
    assert found == [(ErrorCode.INVALID_RECORD, -1), (0, 0), (ErrorCode.INVALID_RECORD, -1)]


def test_a_step_opens_no_more_than_its_share() -> None:
    """Many clients that each send little together send much."""
    stage = small_stage()
    frames = []
    for client in range(2, 7):
        stage.connect(client)
        raw = stage.frame(produce_request(batch([bytes(900)], codec=GZIP)), 12)
        frames.append(Received(client, memoryview(bytearray(raw))))
    stage.step(*frames)
    assert len(opens(stage)) == 2  # three were opened at once
    for job in opens(stage):
        stage.end_opening(job)
    assert sorted(ack for client in range(2, 7) for ack in acks(stage, client)) == [(0, n) for n in range(5)]


def test_jobs_beyond_the_limit_wait_in_order() -> None:
    stage = small_stage(openings_max=2)
    for client in range(2, 6):
        stage.connect(client)
        stage.send(produce_request(LARGE), 12, client)
    assert len(opens(stage)) == 2
    stage.end_opening(opens(stage)[1])
    assert len(opens(stage)) == 3
    stage.drop(5)  # has not begun, and never will
    stage.end_opening(opens(stage)[2])
    stage.end_opening(opens(stage)[0])
    assert len(opens(stage)) == 3
    assert [acks(stage, client) for client in (2, 3, 4)] == [[(0, 10)], [(0, 0)], [(0, 5)]]


def test_a_client_that_leaves_meanwhile_leaves_nothing_behind() -> None:
    """What it sent is not stored, and nothing is held for it."""
    stage = small_stage()
    stage.send(produce_request(LARGE), 12)
    stage.send(produce_request(batch()), 12)
    stage.drop(1)
    assert stage.node.room.held_bytes == 0
    (job,) = opens(stage)
    stage.end_opening(job)
    assert not stage.syncs
    assert not stage.node.openings.under_way
    stage.connect(2)
    assert ack_of(stage.ask(produce_request(batch()), 12, 2)).base_offset == 0


def test_a_large_batch_of_a_client_that_left_is_not_opened() -> None:
    """Its turn had not come: its frame is not held any longer."""
    stage = small_stage(openings_max=1)
    stage.connect(2)
    for client in (1, 2):
        stage.send(produce_request(LARGE), 12, client)
    assert list(stage.node.openings.put_off)
    stage.drop(2)
    assert not stage.node.openings.put_off
    stage.end_opening(opens(stage)[0])
    assert len(opens(stage)) == 1
    assert acks(stage) == [(0, 0)]


def test_a_topic_that_is_deleted_meanwhile_is_named() -> None:
    """It is decided by what there is when the batch is opened."""
    stage = small_stage()
    stage.send(produce_request(LARGE), 12)
    stage.connect(2)
    stage.ask(DeleteTopicsRequest([DeleteTopicState("rain")]), 6, 2)
    (job,) = opens(stage)
    stage.end_opening(job)
    assert acks(stage) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_a_repeat_of_a_large_batch_is_recognised() -> None:
    """The sequence is looked at when the batch is opened, not before."""
    stage = small_stage()
    large = batch([bytes(1000)] * 5, codec=GZIP, producer=(7, 0, 0))
    for _ in range(2):
        stage.send(produce_request(bytearray(large)), 12)
        stage.end_opening(opens(stage)[-1])
        assert acks(stage) == [(0, 0)]
    assert len(opens(stage)) == 2


def test_memory_of_a_request_may_be_used_again_while_it_waits() -> None:
    """The socket's buffer takes the next requests meanwhile."""
    stage = small_stage()
    frame = memoryview(bytearray(stage.frame(produce_request(LARGE), 12)))
    stage.step(Received(1, frame))
    frame[:] = b"\xee" * len(frame)
    (job,) = opens(stage)
    stage.end_opening(job)
    assert acks(stage) == [(0, 0)]
