"""Produce: no acknowledgement before the disk has said yes, and never one too many."""

from __future__ import annotations

from typing import Any

import pytest
from stage.batches import NOW_MS, batch
from stage.nodes import Stage, ack_of, fetch_request, produce_request, records_of

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import LOG_APPEND_TIME, decode_header
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.header import encode_request_header
from penstock.kafka.wire.message import encode
from penstock.kafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.queue.core.events import Received, Sync
from penstock.queue.core.produce_template import SHAPES_MAX
from penstock.queue.handlers import produce


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
def test_no_answer_before_the_sync_has_ended(version: int, acks: int) -> None:
    """Acknowledged means on disk, whatever acks says; so it is for the first request and for those like it."""
    stage = Stage()
    stage.topic()
    for offset in range(3):
        stage.send(produce_request(batch(), acks=acks), version)
        (sync,) = stage.syncs
        assert [file.path.rpartition("/")[2] for file in sync.files][-1] == f"{0:020d}.log"
        assert stage.answers() == []
        stage.end_syncs()
        ((_, answer),) = stage.answers()
        assert (ack_of(answer).error_code, ack_of(answer).base_offset) == (0, offset)


def test_the_name_of_the_first_segment_is_durable_before_the_first_acknowledgement() -> None:
    """A file whose name is lost is lost; no later sync of the folder is needed for it."""
    stage = Stage()
    stage.topic()
    stage.send(produce_request(batch()), 12)
    (sync,) = stage.syncs
    folder = sync.files[-1].path.rpartition("/")[0]
    durable = stage.disk.durable_folder(folder)
    assert durable is not None
    assert {"durable", f"{0:020d}.log"} <= durable.durable_names.keys()
    assert stage.answers() == []


def test_all_that_comes_while_a_sync_runs_is_one_group() -> None:
    """Group commit: one sync for all of it, and answers in one go."""
    stage = Stage()
    stage.topic()
    stage.send(produce_request(batch()), 12)
    for client in (2, 3):
        stage.connect(client)
        stage.send(produce_request(batch([b"x"] * client)), 12, client)
        stage.send(produce_request(batch()), 12, client)
    assert len(stage.syncs) == 1
    first, stage.syncs = stage.syncs, []
    stage.syncs = first
    stage.end_syncs()
    assert [ack_of(answer).base_offset for _, answer in stage.answers(1)] == [0]
    assert [ack_of(answer).base_offset for _, answer in stage.answers(2)] == [1, 3]
    assert [ack_of(answer).base_offset for _, answer in stage.answers(3)] == [4, 7]
    assert stage.node.counters.syncs - 1 == 2  # one of them created the topic


def test_partitions_are_synced_side_by_side() -> None:
    """Each has its own sync; a request for several is answered when the last has ended."""
    stage = Stage()
    stage.topic(partitions=3)
    parts = [PartitionProduceData(n, batch([b"p%d" % n])) for n in range(3)]
    stage.send(ProduceRequest(None, -1, 1000, [TopicProduceData("rain", partition_data=parts)]), 12)
    syncs, stage.syncs = stage.syncs, []
    assert len(syncs) == 3
    for number, sync in enumerate(syncs):
        assert stage.answers() == []
        stage.syncs = [sync]
        stage.end_syncs()
        assert number == 2 or stage.replies[1] == b""
    ((_, answer),) = stage.answers()
    assert [part.error_code for part in answer.responses[0].partition_responses] == [0, 0, 0]


def produce_to(stage: Stage, place: tuple[str, int], value: bytes, version: int) -> tuple[int, int, int]:
    """Write one record there; index, error and offset that are answered."""
    name, number = place
    topic = TopicProduceData(name, partition_data=[PartitionProduceData(number, batch([value]))])
    if version >= 13:
        topic.topic_id = stage.node.catalog.topics[name].topic_id
    stage.send(ProduceRequest(None, -1, 1000, [topic]), version)
    stage.end_syncs()
    ((_, answer),) = stage.answers()
    (ack,) = answer.responses[0].partition_responses
    return ack.index, ack.error_code, ack.base_offset


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
@pytest.mark.parametrize("partitions", [3, SHAPES_MAX // 2, SHAPES_MAX])
def test_requests_by_turns_land_where_they_were_sent(version: int, partitions: int) -> None:
    """In topics whose names differ in length, in few partitions or in more than are remembered."""
    stage = Stage()
    for name in ("rain", "hail"):
        stage.topic(name, partitions=partitions)
    stage.topic("showers", partitions=partitions)
    places = [(name, number) for number in range(partitions) for name in ("rain", "showers", "hail")]
    for turn in range(3):
        for place in places:
            assert produce_to(stage, place, f"{place} {turn}".encode(), version) == (place[1], 0, turn)
    for name, number in places:
        stored = records_of(stage.ask(fetch_request(0, name, number), 12))
        assert [stored.count(f"{(name, number)} {turn}".encode()) for turn in range(3)] == [1, 1, 1]
        assert stored.count(b"('") == 3


def test_a_place_written_before_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if others, or a request for several, came in between; a topic made meanwhile makes all look anew."""
    stage = Stage()
    stage.topic(partitions=2)
    stage.topic("showers")
    decoded = []
    real = produce.decode_produce
    monkeypatch.setattr(produce, "decode_produce", lambda *given: (decoded.append(given), real(*given))[1])
    first, second, other = ("rain", 0), ("rain", 1), ("showers", 0)
    for place in (first, second, other):
        produce_to(stage, place, b"first", 12)
    both = [PartitionProduceData(number, batch()) for number in range(2)]
    stage.ask(ProduceRequest(None, -1, 1000, [TopicProduceData("rain", partition_data=both)]), 12)
    assert len(decoded) == 4
    offsets = [produce_to(stage, place, b"again", 12)[2] for place in (second, other, first, second)]
    assert offsets == [2, 1, 2, 3]
    assert len(decoded) == 4
    stage.topic("snow")
    produce_to(stage, first, b"anew", 12)
    assert len(decoded) == 5


@pytest.mark.parametrize("partitions", [SHAPES_MAX, SHAPES_MAX + 6])
def test_a_client_with_many_partitions_is_decoded_for_the_rest_only(
    monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    stage = Stage()
    stage.topic(partitions=partitions)
    for number in range(partitions):
        produce_to(stage, ("rain", number), b"first", 12)
    decoded = []
    real = produce.decode_produce
    monkeypatch.setattr(produce, "decode_produce", lambda *given: (decoded.append(given), real(*given))[1])
    for number in range(partitions):
        produce_to(stage, ("rain", number), b"again", 12)
    assert len(decoded) == partitions - SHAPES_MAX


def test_long_names_are_not_remembered() -> None:
    """A client names itself as it likes: what is kept of its requests is small."""
    stage = Stage()
    stage.topic()
    body = encode(produce_request(batch()), 12)
    for client, is_kept in (("me", True), ("x" * 1000, False)):
        number = len(stage.node.connections) + 1
        stage.connect(number)
        stage.send_raw(encode_request_header(ApiKey.PRODUCE, 12, 1, client) + body, number)
        stage.end_syncs()
        assert stage.replies[number]
        assert (stage.node.connections[number].shapes is not None) == is_kept


@pytest.mark.parametrize("times", [1, 3])
def test_a_repeat_of_a_batch_that_is_not_durable_yet_waits_for_it(times: int) -> None:
    """The answer to a repeat is the answer to the first, and as true."""
    stage = Stage()
    stage.topic()
    sent = batch([b"once"], producer=(5, 0, 0))
    for _ in range(times + 1):
        stage.send(produce_request(bytes(sent)), 12)
    assert stage.answers() == []
    stage.end_syncs()
    assert [ack_of(answer).base_offset for _, answer in stage.answers()] == [0] * (times + 1)
    assert stage.node.counters.repeats == times
    assert decode_header(records_of(stage.fetch(0))).next_offset == 1
    assert ack_of(stage.produce(bytes(sent))).base_offset == 0


def test_sequences_and_epochs_are_refused_with_their_codes() -> None:
    """As clients know them from Kafka."""
    stage = Stage()
    stage.topic()
    stage.produce(batch(producer=(5, 1, 0)))
    assert ack_of(stage.produce(batch(producer=(5, 1, 7)))).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert ack_of(stage.produce(batch(producer=(5, 0, 1)))).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert ack_of(stage.produce(batch(producer=(5, 1, 1)))).base_offset == 1


def test_a_failed_sync_stops_the_partition_for_good() -> None:
    """No ack for that group or any other, and never another sync: the next one would lie."""
    stage = Stage()
    stage.topic(partitions=2)
    stage.produce(batch([b"safe"]))
    stage.send(produce_request(batch()), 12)
    stage.send(produce_request(batch()), 12)
    stage.end_syncs("Input/output error")
    assert [ack_of(answer).error_code for _, answer in stage.answers()] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert stage.node.stopped
    before = len(stage.seen(Sync))
    assert ack_of(stage.produce()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    stage.wait(120_000)
    stage.end_syncs()
    assert all("rain" not in sync for sync in map(str, stage.seen(Sync)[before:]))
    assert not any(file.path.endswith(".log") for sync in stage.seen(Sync)[before:] for file in sync.files)
    assert decode_header(records_of(stage.fetch(0))).next_offset == 1
    assert ack_of(stage.produce(partition=1)).error_code == 0


def test_what_was_staged_while_a_sync_failed_is_refused_too() -> None:
    """It stands behind bytes nobody knows of."""
    stage = Stage()
    stage.topic()
    stage.send(produce_request(batch()), 12)
    running, stage.syncs = stage.syncs, []
    stage.send(produce_request(batch()), 12)
    stage.syncs = running
    stage.end_syncs("Input/output error")
    assert [ack_of(answer).error_code for _, answer in stage.answers()] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert stage.syncs == []


def test_a_full_disk_refuses_a_group_and_takes_the_next() -> None:
    """Producers keep their sequences; nothing of the group is there."""
    stage = Stage()
    stage.topic()
    stage.produce(batch(producer=(5, 0, 0)))
    stage.disk.faults.room = 20
    lost = batch([b"lost" * 50], producer=(5, 0, 1))
    for _ in range(3):
        assert ack_of(stage.produce(bytes(lost))).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not stage.node.stopped
    assert decode_header(records_of(stage.fetch(0))).next_offset == 1
    stage.disk.faults.room = None
    assert ack_of(stage.produce(bytes(lost))).base_offset == 1


def test_a_batch_written_before_a_segment_could_not_be_begun_is_acknowledged() -> None:
    """Only what did not reach the disk is refused, though both came in one step."""
    stage = Stage()
    stage.topic(segment_bytes=str(1 << 20))
    stage.produce(batch([b"x" * 600_000]))
    frames = [stage.frame(produce_request(batch([b"y" * size])), 12) for size in (100, 600_000)]
    stage.disk.faults.rates = {"create": 1.0}
    stage.step(*(Received(1, memoryview(bytearray(frame))) for frame in frames))
    stage.disk.faults.calm_down()
    stage.end_syncs()
    assert [ack_of(answer).error_code for _, answer in stage.answers()] == [0, ErrorCode.KAFKA_STORAGE_ERROR]
    assert stage.fetch(0).responses[0].partitions[0].high_watermark == 2


def test_a_tail_that_cannot_be_cut_leaves_nobody_waiting() -> None:
    """The partition stops; those who wait for the sync under way are told, not forgotten."""
    stage = Stage()
    stage.topic()
    stage.produce()
    stage.send(produce_request(batch()), 12)
    stage.disk.faults.room, stage.disk.faults.rates = 10, {"truncate": 1.0}
    stage.send(produce_request(batch([b"torn" * 50])), 12)
    stage.disk.faults.calm_down()
    stage.end_syncs()
    assert len(stage.answers()) == 2
    assert stage.node.stopped


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, ErrorCode.CORRUPT_MESSAGE),
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (b"short", ErrorCode.CORRUPT_MESSAGE),
        (bytes(200), ErrorCode.INVALID_RECORD),
        (bytes(batch())[:-1], ErrorCode.CORRUPT_MESSAGE),
        (batch(record_count=9), ErrorCode.INVALID_RECORD),
        (batch(attributes=0x20), ErrorCode.INVALID_RECORD),
        (batch(stamps=[NOW_MS + 2 * 3_600_000]), ErrorCode.INVALID_TIMESTAMP),
        (batch([b"x" * 2_000_000]), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_a_batch_that_lies_is_refused_and_not_stored(data: Any, code: ErrorCode) -> None:
    """The first time, and the second time when its shape is known."""
    stage = Stage()
    stage.topic()
    for _ in range(2):
        ack = ack_of(stage.produce(data) if data is not None else stage.ask(produce_request(None), 12))
        assert (ack.error_code, ack.base_offset) == (code, -1)
        assert ack.error_message
    assert stage.fetch(0).responses[0].partitions[0].high_watermark == 0
    assert stage.node.counters.refusals == {int(code): 2}


def test_records_too_far_in_the_past_are_refused_where_the_topic_says_so() -> None:
    """message.timestamp.before.max.ms; no time at all is no past."""
    stage = Stage()
    stage.topic(message_timestamp_before_max_ms="1000")
    assert ack_of(stage.produce(batch(stamps=[NOW_MS - 1001]))).error_code == ErrorCode.INVALID_TIMESTAMP
    assert ack_of(stage.produce(batch(stamps=[NOW_MS - 1000]))).error_code == 0
    assert ack_of(stage.produce(batch(stamps=[-1]))).error_code == 0


def test_append_time_is_the_broker_s_clock() -> None:
    """The answer says it, and the stored batch carries it with a right checksum."""
    stage = Stage()
    stage.topic(message_timestamp_type="LogAppendTime")
    for _ in range(2):
        assert ack_of(stage.produce(batch(stamps=[5]))).log_append_time_ms == NOW_MS
    header = decode_header(records_of(stage.fetch(0)))
    assert (header.max_timestamp, header.attributes & LOG_APPEND_TIME) == (NOW_MS, LOG_APPEND_TIME)


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_unknown_acks_are_refused_every_time(acks: int) -> None:
    """Also when the client's requests are known by their shape."""
    stage = Stage()
    stage.topic()
    for _ in range(3):
        answer = stage.ask(produce_request(batch(), acks=acks), 9)
        assert ack_of(answer).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_unknown_topics_and_partitions_are_told_apart_from_errors_of_the_disk() -> None:
    stage = Stage()
    topic_id = stage.topic()
    assert ack_of(stage.produce(topic="fog")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for partition in (1, -1):
        assert ack_of(stage.produce(partition=partition)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    part = PartitionProduceData(0, batch())
    by_id = ProduceRequest(None, -1, 1000, [TopicProduceData("", topic_id, [part])])
    assert ack_of(stage.ask(by_id, 13)).error_code == 0
    unknown = ProduceRequest(None, -1, 1000, [TopicProduceData("", type(topic_id)(int=99), [part])])
    assert ack_of(stage.ask(unknown, 13)).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_acks_0_gets_no_answer_but_is_stored() -> None:
    """And does not disturb the order of the answers around it."""
    stage = Stage()
    stage.topic()
    stage.send(produce_request(batch(), acks=0), 9)
    last = stage.send(produce_request(batch()), 9)
    stage.end_syncs()
    ((correlation, answer),) = stage.answers()
    assert (correlation, ack_of(answer).base_offset) == (last, 1)


def test_a_memory_topic_answers_at_once() -> None:
    """No sync is waited for; one comes in passing."""
    stage = Stage()
    stage.topic(penstock_durability="memory")
    stage.send(produce_request(batch()), 12)
    ((_, answer),) = stage.answers()
    assert ack_of(answer).error_code == 0
    stage.send(fetch_request(0), 12)
    ((_, fetched),) = stage.answers()
    assert records_of(fetched)
    assert stage.syncs == []
    stage.wait(stage.config.checkpoint_ms)
    assert stage.syncs
