"""Fetch: only what is durable, the moment it is, within the client's limits."""

from __future__ import annotations

from uuid import UUID

from stage.batches import batch
from stage.logs import cut
from stage.nodes import Stage, ack_of, fetch_request, produce_request, records_of

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import decode_header
from penstock.kafka.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.queue.core.events import Load, Loaded, Note
from penstock.queue.core.partition import DAMAGES_MAX
from penstock.queue.log.layout import LOG, file_name, partition_folder

LONG_MS = 60_000


def code_of(answer: object) -> int:
    code: int = answer.responses[0].partitions[0].error_code  # type: ignore[attr-defined]  # a fetch response
    return code


def test_a_waiting_fetch_is_answered_the_moment_its_bytes_are_durable() -> None:
    """Not when they are written, and without any time passing."""
    stage = Stage()
    stage.topic()
    stage.connect(2)
    stage.send(fetch_request(0, wait_ms=LONG_MS), 12, 2)
    stage.send(produce_request(batch([b"news"])), 12)
    assert stage.answers(2) == []
    stage.end_syncs()
    ((_, answer),) = stage.answers(2)
    assert decode_header(records_of(answer)).record_count == 1
    assert ack_of(stage.answers(1)[0][1]).error_code == 0


def test_what_is_not_durable_is_not_served() -> None:
    """A reader at the end sees the old end until the sync has ended."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([b"a"]))
    stage.send(produce_request(batch([b"b"])), 12)
    running, stage.syncs = stage.syncs, []
    stage.connect(2)
    answer = stage.fetch(0, client=2)
    assert [decode_header(found).base_offset for found in cut(records_of(answer))] == [0]
    assert answer.responses[0].partitions[0].high_watermark == 1
    assert records_of(stage.fetch(1, client=2)) == b""
    stage.syncs = running
    stage.end_syncs()
    stage.answers()
    assert len(cut(records_of(stage.fetch(0)))) == 2


def test_a_fetch_waits_for_its_minimum_and_no_longer_than_it_says() -> None:
    """min_bytes counts what becomes visible; max_wait ends the wait with what there is."""
    stage = Stage()
    stage.topic()
    stage.connect(2)
    size = len(batch())
    stage.send(fetch_request(0, wait_ms=500, min_bytes=3 * size), 12, 2)
    stage.produce()
    stage.produce()
    assert stage.answers(2) == []
    stage.produce()
    assert len(cut(records_of(stage.answers(2)[0][1]))) == 3
    stage.send(fetch_request(3, wait_ms=500, min_bytes=3 * size), 12, 2)
    stage.produce()
    stage.wait(499)
    assert stage.answers(2) == []
    stage.wait(1)
    assert len(cut(records_of(stage.answers(2)[0][1]))) == 1


def test_a_fetch_wakes_over_the_end_of_a_segment() -> None:
    """Bytes are counted wherever they stand."""
    stage = Stage()
    stage.topic(segment_bytes=str(1 << 20))
    stage.connect(2)
    stage.produce(batch([b"x" * 700_000]))
    stage.send(fetch_request(1, wait_ms=LONG_MS, min_bytes=1_000_000, max_bytes=1 << 24), 12, 2)
    stage.produce(batch([b"y" * 700_000]))
    assert stage.answers(2) == []
    stage.produce(batch([b"z" * 700_000]))
    assert len(stage.answers(2)) == 1


def test_a_deadline_of_zero_is_answered_at_once() -> None:
    stage = Stage()
    stage.topic()
    assert records_of(stage.fetch(0, wait_ms=0)) == b""


def test_max_bytes_holds_but_for_one_batch() -> None:
    """A batch larger than the limit still comes alone, or its reader could never go on."""
    stage = Stage()
    stage.topic()
    stage.produce(*(batch([b"x" * 1000]) for _ in range(5)))
    size = len(batch([b"x" * 1000]))
    for limit in (1, size - 1, size, 2 * size, 3 * size + 5):
        want = max(1, limit // size)
        assert len(cut(records_of(stage.fetch(0, max_bytes=limit)))) == want
        assert len(cut(records_of(stage.fetch(0, partition_bytes=limit)))) == want


def test_max_bytes_is_shared_by_all_partitions_of_a_request() -> None:
    """What the first partitions use is not there for the others."""
    stage = Stage()
    stage.topic(partitions=3)
    size = len(batch([b"x" * 1000]))
    for partition in range(3):
        stage.produce(batch([b"x" * 1000]), batch([b"x" * 1000]), partition=partition)
    parts = [FetchPartition(n, fetch_offset=0, partition_max_bytes=1 << 20) for n in range(3)]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=3 * size, topics=[FetchTopic("rain", partitions=parts)]
    )
    answer = stage.ask(request, 12)
    sizes = [len(part.records or b"") for part in answer.responses[0].partitions]
    assert sizes == [2 * size, size, 0]


def test_offsets_outside_of_the_log_are_refused_at_once() -> None:
    """Before the start, and behind the end."""
    stage = Stage()
    stage.topic()
    stage.produce()
    for offset in (-1, 2, 2**62):
        assert code_of(stage.fetch(offset, wait_ms=LONG_MS)) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert code_of(stage.fetch(1)) == 0


def test_unknown_topics_partitions_ids_and_epochs_have_their_codes() -> None:
    stage = Stage()
    topic_id = stage.topic()
    assert code_of(stage.fetch(0, topic="fog", wait_ms=LONG_MS)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(stage.fetch(0, partition=4)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    part = FetchPartition(0, fetch_offset=0, partition_max_bytes=100)
    by_id = FetchRequest(topics=[FetchTopic("", topic_id, [part])])
    assert code_of(stage.ask(by_id, 18)) == 0
    assert (
        code_of(stage.ask(FetchRequest(topics=[FetchTopic("", UUID(int=9), [part])]), 18)) == ErrorCode.UNKNOWN_TOPIC_ID
    )
    part.current_leader_epoch = 1
    assert code_of(stage.ask(by_id, 18)) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_session_nobody_gave_out_is_not_found() -> None:
    """The client begins anew with all it wants."""
    stage = Stage()
    answer = stage.ask(FetchRequest(session_id=7, session_epoch=3), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_damaged_record_is_an_error_with_a_way_on() -> None:
    """CORRUPT_MESSAGE there, a note that names the offset behind it, and everything else as before."""
    stage = Stage()
    topic_id = stage.topic()
    stage.produce(*(batch([b"value"]) for _ in range(3)))
    path = f"{partition_folder(topic_id, 0)}/{file_name(0, LOG)}"
    stage.disk.inode(path).flip(len(batch([b"value"])) + 65, 2)
    assert code_of(stage.fetch(1, wait_ms=LONG_MS)) == ErrorCode.CORRUPT_MESSAGE
    assert "damaged record" in stage.notes
    assert stage.node.damaged == {"rain-0": [1]}
    assert len(cut(records_of(stage.fetch(0)))) == 1
    assert decode_header(records_of(stage.fetch(2))).base_offset == 2


def test_damage_is_told_once_however_often_it_is_met() -> None:
    """A client asks twice a second, for ever: one line for each place, and it is known until the start moves on."""
    stage = Stage()
    topic_id = stage.topic()
    stage.produce(*(batch([b"value"]) for _ in range(3)))
    path = f"{partition_folder(topic_id, 0)}/{file_name(0, LOG)}"
    for number in (0, 1):
        stage.disk.inode(path).flip(number * len(batch([b"value"])) + 65, 2)
    for offset in (0, 1, 0, 1, 1):
        stage.fetch(offset)
    assert [note.details["offset"] for note in stage.seen(Note) if note.event == "damaged record"] == [0, 1]
    assert stage.node.counters.damaged_reads == 5
    assert stage.node.damaged == {"rain-0": [0, 1]}
    stage.ask(DeleteRecordsRequest([DeleteRecordsTopic("rain", [DeleteRecordsPartition(0, 2)])]), 2)
    assert stage.node.damaged == {}


def test_damage_is_told_again_where_the_start_has_moved_beyond_what_is_remembered() -> None:
    """Places are bounded; those that are deleted make room for what is met later."""
    stage = Stage()
    topic_id = stage.topic()
    many = DAMAGES_MAX + 2
    stage.produce(*(batch([b"value"]) for _ in range(many)))
    path = f"{partition_folder(topic_id, 0)}/{file_name(0, LOG)}"
    for number in range(many):
        stage.disk.inode(path).flip(number * len(batch([b"value"])) + 65, 2)
        stage.fetch(number)
    assert stage.node.damaged == {"rain-0": list(range(DAMAGES_MAX))}

    stage.ask(DeleteRecordsRequest([DeleteRecordsTopic("rain", [DeleteRecordsPartition(0, 50)])]), 2)
    stage.fetch(many - 1)

    assert stage.node.damaged == {"rain-0": [*range(50, DAMAGES_MAX), many - 1]}


def test_a_disk_that_does_not_read_is_a_storage_error() -> None:
    stage = Stage()
    stage.topic()
    stage.produce()
    stage.disk.faults.rates = {"read": 1.0}
    assert code_of(stage.fetch(0)) == ErrorCode.KAFKA_STORAGE_ERROR
    stage.disk.faults.calm_down()
    assert code_of(stage.fetch(0)) == 0


def test_fetches_of_a_deleted_topic_are_answered() -> None:
    """Nobody waits for records that will never come."""
    stage = Stage()
    stage.topic()
    stage.connect(2)
    stage.send(fetch_request(0, wait_ms=LONG_MS), 12, 2)
    stage.ask(DeleteTopicsRequest([DeleteTopicState("rain")]))
    ((_, answer),) = stage.answers(2)
    assert code_of(answer) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deleting_a_topic_while_it_is_synced_answers_who_waits() -> None:
    """The end of that sync then means nothing; nor does the next checkpoint."""
    stage = Stage()
    stage.topic()
    stage.connect(2)
    stage.send(produce_request(batch()), 12)
    data, stage.syncs = stage.syncs, []
    stage.ask(DeleteTopicsRequest([DeleteTopicState("rain")]), client=2)
    ((_, answer),) = stage.answers(1)
    assert ack_of(answer).error_code != 0
    stage.syncs = data
    stage.syncs[0] = data[0]._replace(files=[], folders=[])
    stage.end_syncs()
    stage.wait(5_000)
    stage.end_syncs()
    assert not stage.node.stopped
    stage.topic()
    assert ack_of(stage.produce()).base_offset == 0


def test_a_client_that_leaves_takes_its_waiting_fetches_along() -> None:
    """Clients that come, ask and go must not fill the memory."""
    stage = Stage()
    stage.topic()
    for number in range(2, 52):
        stage.connect(number)
        stage.send(fetch_request(0, wait_ms=2**31 - 1), 12, number)
        stage.drop(number)
    (partition,) = stage.node.store.open.values()
    assert not partition.fetches
    assert len(stage.node.connections) == 1
    assert ack_of(stage.produce()).error_code == 0


def test_who_reads_old_records_waits_for_the_disk_alone() -> None:
    """What is not in memory is asked for; others are answered meanwhile, and the reader when it has come."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([bytes(200_000)]))
    stage.disk.forget()
    for client in (2, 3):
        stage.connect(client)
    stage.send(fetch_request(0), 12, 2)
    (load,) = stage.seen(Load)
    assert [part.length > 200_000 for part in load.parts] == [True]
    assert stage.answers(2) == []
    assert ack_of(stage.produce(batch([b"live"]))).error_code == 0
    assert len(cut(records_of(stage.fetch(1, client=3)))) == 1
    stage.end_load(load)
    ((_, answer),) = stage.answers(2)
    assert [decode_header(found).base_offset for found in cut(records_of(answer))] == [0, 1]


def test_who_leaves_while_the_disk_reads_is_forgotten() -> None:
    stage = Stage()
    stage.topic()
    stage.produce(batch([bytes(200_000)]))
    stage.disk.forget()
    stage.connect(2)
    stage.send(fetch_request(0), 12, 2)
    (load,) = stage.seen(Load)
    stage.drop(2)
    stage.step(Loaded(load.job))
    assert stage.node.room.held_bytes == 0


def test_one_reader_does_not_hold_a_step_for_long() -> None:
    """A reply ends at fetch_bytes_step, though its partitions and the client would give and take more."""
    stage = Stage(fetch_bytes_step=300_000)
    stage.topic("rain", partitions=2)
    for partition in (0, 1):
        stage.produce(batch([bytes(200_000)]), partition=partition)
    wanted = [FetchPartition(number, fetch_offset=0, partition_max_bytes=1 << 20) for number in (0, 1)]
    request = FetchRequest(max_wait_ms=0, max_bytes=50 << 20, topics=[FetchTopic("rain", partitions=wanted)])
    first, second = stage.ask(request, 12).responses[0].partitions
    assert (len(first.records) > 200_000, len(second.records)) == (True, 0)
