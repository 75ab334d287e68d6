"""Fetches of records that are not in memory: only who wants them waits for the disk."""

from __future__ import annotations

from stage.batches import batch
from stage.logs import cut
from stage.nodes import Stage, fetch_request, produce_request, records_of

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import decode_header
from penstock.kafka.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.kafka.wire.messages.metadata import MetadataRequest
from penstock.queue.core.events import Load, Note
from penstock.queue.log.layout import LOG, file_name, partition_folder

LONG_MS = 100_000
LARGE = 200_000


def with_old_records(count: int = 1, **settings: int) -> Stage:
    """A topic whose records are on the disk only, and a second client."""
    stage = Stage(**settings)
    stage.topic()
    stage.produce(*(batch([bytes(LARGE)]) for _ in range(count)))
    stage.disk.forget()
    stage.connect(2)
    return stage


def test_the_time_that_the_disk_takes_counts_as_waiting() -> None:
    """A fetch waits as long as it said, not as long again after the disk has read."""
    stage = with_old_records()
    stage.send(fetch_request(0, wait_ms=100, min_bytes=10 * LARGE), 12, 2)
    (load,) = stage.seen(Load)
    stage.wait(150)
    assert stage.answers(2) == []
    stage.end_load(load)
    ((_, answer),) = stage.answers(2)
    assert len(cut(records_of(answer))) == 1


def test_what_left_the_memory_while_a_fetch_waited_is_loaded_before_it_is_answered() -> None:
    """Whoever waits for more may wait for long."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([bytes(LARGE)]))
    stage.connect(2)
    stage.send(fetch_request(0, wait_ms=100, min_bytes=10 * LARGE), 12, 2)
    assert stage.seen(Load) == []
    stage.disk.forget()
    stage.wait(100)
    (load,) = stage.seen(Load)
    assert stage.answers(2) == []
    stage.end_load(load)
    ((_, answer),) = stage.answers(2)
    assert len(cut(records_of(answer))) == 1


def test_who_reads_on_in_the_next_segment_waits_for_it_alone() -> None:
    """Where one segment ends the next begins: the disk is asked for that one."""
    stage = Stage()
    stage.topic(segment_bytes=str(1 << 20))
    stage.produce(*(batch([bytes(700_000)]) for _ in range(3)))
    assert len(cut(records_of(stage.fetch(0)))) == 1
    stage.disk.forget()
    stage.connect(2)
    stage.send(fetch_request(1), 12, 2)
    (load,) = stage.seen(Load)
    assert [part.file.path.rpartition("/")[2] for part in load.parts] == [file_name(1, LOG)]


def test_a_batch_larger_than_a_client_asks_for_is_loaded_whole() -> None:
    """It is sent whatever its size, else the client would never get on."""
    stage = with_old_records()
    stage.send(fetch_request(0, partition_bytes=100), 12, 2)
    (load,) = stage.seen(Load)
    assert [part.length > LARGE for part in load.parts] == [True]
    stage.end_load(load)
    ((_, answer),) = stage.answers(2)
    assert len(cut(records_of(answer))) == 1
    assert max((cold for _, cold in stage.disk.pages.cold_reads), default=0) == 0


def test_the_disk_reads_for_a_few_at_once_and_for_nobody_who_is_gone() -> None:
    """The others wait in the order they came."""
    stage = with_old_records(loads_max=2)
    for client in range(3, 7):
        stage.connect(client)
    for client in range(2, 7):
        stage.send(fetch_request(0), 12, client)
    assert [load.job for load in stage.seen(Load)] == [1, 2]
    stage.drop(4)
    stage.disk.forget()
    stage.end_load(stage.seen(Load)[0])
    assert [len(stage.answers(client)) for client in (2, 5)] == [1, 0]
    stage.disk.forget()
    stage.end_load(stage.seen(Load)[2])
    assert [len(stage.answers(client)) for client in (3, 4, 5)] == [0, 0, 1]
    assert len(stage.seen(Load)) == 4


def test_who_comes_asks_and_goes_leaves_no_work_behind() -> None:
    """Clients that give up and try again must not make the disk read for nobody."""
    stage = with_old_records(loads_max=2)
    for client in range(3, 53):
        stage.connect(client)
        stage.send(fetch_request(0), 12, client)
        stage.drop(client)
    assert len(stage.seen(Load)) == 2
    for load in stage.seen(Load):
        stage.end_load(load)
    assert (len(stage.seen(Load)), stage.node.loads.under_way, stage.node.loads.put_off) == (2, {}, {})


def test_a_fetch_waits_for_all_before_it_on_its_connection() -> None:
    """So it tells what there is when it is answered: also what the same client has just written."""
    stage = Stage()
    stage.topic()
    stage.send(produce_request(batch([b"mine"])), 12)
    stage.send(fetch_request(0), 12)
    stage.send(fetch_request(0), 12)
    assert stage.pauses == [1]
    stage.end_syncs()
    (_, (_, first), (_, second)) = stage.answers()
    assert [len(cut(records_of(answer))) for answer in (first, second)] == [1, 1]
    assert stage.resumes == [1]


def test_who_is_answered_by_what_another_had_to_wait_with_goes_on_at_once() -> None:
    """No event may follow for long: whatever can be taken up is taken up in the same step."""
    stage = Stage()
    stage.topic(partitions=2, penstock_durability="memory")
    for client in (2, 3):
        stage.connect(client)
    stage.send(fetch_request(0, wait_ms=LONG_MS), 12, 2)
    stage.send(fetch_request(0), 12, 2)
    stage.send(fetch_request(0, partition=1, wait_ms=100), 12, 3)
    stage.send(fetch_request(0, partition=1), 12, 3)
    stage.send(produce_request(batch([b"late"])), 12, 3)
    assert stage.pauses == [2, 3]
    stage.wait(100)
    assert [len(cut(records_of(answer))) for _, answer in stage.answers(2)] == [1, 1]
    assert sorted(stage.resumes) == [2, 3]


def test_an_answer_that_is_held_back_counts_as_held() -> None:
    """Who asks for much behind a fetch that waits cannot fill the memory."""
    stage = Stage(inflight_bytes_max_connection=70_000)
    stage.topic(partitions=500)
    stage.send(fetch_request(0, wait_ms=LONG_MS), 12)
    for _ in range(100):
        stage.send(MetadataRequest(None, False), 4)
    assert stage.pauses == [1]
    assert 10_000 < stage.node.room.held_bytes < 100_000
    stage.wait(LONG_MS)
    stage.drained(1)
    assert len(stage.answers()) > 1


def test_who_wants_more_at_once_than_a_reply_holds_does_not_wait_for_it() -> None:
    """Waiting would bring nothing: the rest comes with the next fetch."""
    stage = Stage(fetch_bytes_step=300_000)
    stage.topic()
    stage.produce(*(batch([bytes(LARGE)]) for _ in range(3)))
    answer = stage.fetch(0, wait_ms=LONG_MS, min_bytes=3 * LARGE)
    assert len(cut(records_of(answer))) == 1


def with_old_partitions(count: int, damaged: int) -> tuple[Stage, FetchRequest]:
    """Partitions on the disk only, the first of them damaged, and a request with room for one of them."""
    stage = Stage()
    topic_id = stage.topic(partitions=count)
    for partition in range(count):
        stage.produce(*(batch([bytes(600_000)]) for _ in range(2)), partition=partition)
    for partition in range(damaged):
        stage.disk.inode(f"{partition_folder(topic_id, partition)}/{file_name(0, LOG)}").flip(300_000, 1)
    stage.disk.forget()
    stage.connect(2)
    wanted = [FetchPartition(number, fetch_offset=0, partition_max_bytes=1 << 20) for number in range(count)]
    return stage, FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[FetchTopic("rain", partitions=wanted)])


def test_what_stands_behind_a_damaged_record_in_a_request_is_loaded_too() -> None:
    """The first partition takes all the room and has nothing to give; the second is not read while all wait."""
    stage, request = with_old_partitions(2, damaged=1)
    stage.send(request, 12, 2)
    stage.end_load(stage.seen(Load)[0])
    assert stage.answers(2) == []
    stage.end_load(stage.seen(Load)[1])
    ((_, answer),) = stage.answers(2)
    first, second = answer.responses[0].partitions
    assert (first.error_code, len(cut(second.records))) == (ErrorCode.CORRUPT_MESSAGE, 1)


def test_however_many_before_it_are_damaged_a_partition_is_loaded_and_read() -> None:
    """Each is asked of the disk for itself: what the others have cost does not count."""
    stage, request = with_old_partitions(6, damaged=5)
    stage.send(request, 12, 2)
    for turn in range(6):
        assert stage.answers(2) == []
        (part,) = stage.seen(Load)[turn].parts
        assert f"/{turn}/" in part.file.path
        stage.end_load(stage.seen(Load)[turn])
    ((_, answer),) = stage.answers(2)
    *others, last = answer.responses[0].partitions
    assert [part.error_code for part in others] == [ErrorCode.CORRUPT_MESSAGE] * 5
    assert (last.error_code, len(cut(last.records))) == (0, 1)
    assert len([note for note in stage.seen(Note) if note.event == "damaged record"]) == 5


def test_who_has_its_turn_last_is_read_although_the_memory_forgets() -> None:
    """What the disk was asked for three times is read then, also where others before it yielded nothing."""
    stage, request = with_old_partitions(2, damaged=1)
    stage.send(request, 12, 2)
    stage.end_load(stage.seen(Load)[0])
    for turn in range(1, 4):
        assert stage.answers(2) == []
        stage.end_load(stage.seen(Load)[turn]._replace(parts=[]))
    ((_, answer),) = stage.answers(2)
    assert len(cut(answer.responses[0].partitions[1].records)) == 1


def test_records_deleted_while_the_disk_reads_are_not_served() -> None:
    """What is told is what there is when it is told."""
    stage = with_old_records(count=2)
    stage.send(fetch_request(0), 12, 2)
    stage.ask(DeleteRecordsRequest([DeleteRecordsTopic("rain", [DeleteRecordsPartition(0, 1)])], 1000))
    stage.end_load(stage.seen(Load)[0])
    ((_, answer),) = stage.answers(2)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert decode_header(records_of(stage.fetch(1))).base_offset == 1


def test_a_topic_deleted_while_the_disk_reads_is_unknown() -> None:
    """Also when its files are gone before the disk could read them."""
    stage = with_old_records()
    stage.send(fetch_request(0), 12, 2)
    (load,) = stage.seen(Load)
    stage.ask(DeleteTopicsRequest([DeleteTopicState("rain")]))
    stage.end_load(load._replace(parts=[]))
    ((_, answer),) = stage.answers(2)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_disk_that_does_not_read_is_told_and_not_asked_for_ever() -> None:
    """Three times, since memory may forget; then the error is told."""
    stage = with_old_records()
    stage.disk.faults.rates = {"read": 1.0}
    stage.send(fetch_request(0), 12, 2)
    for _ in range(3):
        assert stage.answers(2) == []
        stage.end_load(stage.seen(Load)[-1]._replace(parts=[]))
    ((_, answer),) = stage.answers(2)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
