"""Transactions in one partition: seen whole once they are committed, never seen when they are aborted."""

from __future__ import annotations

import pytest
from stage.batches import NOW_MS, batch
from stage.logs import FOLDER, bytes_of, new_disk, opened, overwrite, path, put, sync
from stage.transactions import committed_values, stage_end, stage_part

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.kafka.records.batch import decode_header, encode_filler
from penstock.kafka.records.marker import Marker, decode_marker, encode_marker
from penstock.queue.log.log import Log
from penstock.queue.log.producer_snapshot import decode_snapshot, encode_snapshot
from penstock.queue.log.producers import Fault, ProducerTable
from penstock.queue.log.reading import aborted_between, read
from proof.sim.disk import FakeDisk

SMALL = TopicConfig(segment_bytes=400)


def two_lives() -> tuple[FakeDisk, Log]:
    """One transaction aborted, one committed, one open, over several segments; all of it durable."""
    disk = new_disk()
    log = opened(disk, SMALL)
    for number in range(3):
        for pid in (1, 2, 3):
            stage_part(log, b"%d/%d" % (pid, number), (pid, 0, number))
            sync(log)
    stage_end(log, 1, commit=False)
    sync(log)
    stage_end(log, 2)
    sync(log)
    return disk, log


def test_a_marker_is_the_control_record_that_kafka_writes() -> None:
    """Key: version 0 and type; value: version 0 and the coordinator's epoch; no sequence."""
    commit = encode_marker(7, 3, Marker(True, 5), NOW_MS)
    assert bytes(commit[61:]).hex() == "20" + "000000" + "08" + "00000001" + "0c" + "000000000005" + "00"
    header = decode_header(commit)
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (0x30, 7, 3, -1)
    abort = encode_marker(7, 3, Marker(False, 5, 100, 200), NOW_MS)
    assert bytes(abort[65:70]).hex() == "08" + "00000000"
    assert decode_marker(commit) == Marker(True, 5)
    assert decode_marker(abort) == Marker(False, 5, 100, 200)


def test_the_stable_end_is_where_the_first_open_transaction_begins() -> None:
    """Whatever is committed behind it, and however much is visible."""
    log = opened(new_disk())
    put(log, batch([b"plain"]))
    stage_part(log, b"a", (1, 0, 0))
    stage_part(log, b"b", (2, 0, 0))
    stage_end(log, 2)
    sync(log)
    assert (log.stable.offset, log.visible.offset) == (1, 4)
    assert committed_values(log) == [b"plain"]
    stage_end(log, 1)
    sync(log)
    assert (log.stable.offset, log.visible.offset) == (5, 5)
    assert committed_values(log) == [b"plain", b"a", b"b"]


def test_a_transaction_is_decided_only_when_its_marker_is_durable() -> None:
    """A written marker may still be lost."""
    log = opened(new_disk())
    stage_part(log, b"a", (1, 0, 0))
    sync(log)
    stage_end(log, 1)
    log.flush()
    assert (log.stable.offset, log.written.offset) == (0, 2)
    stage_part(log, b"next", (1, 0, 1))
    log.flush()
    sync(log)
    assert (log.stable.offset, log.visible.offset) == (2, 3)


def test_in_a_memory_topic_a_written_marker_decides() -> None:
    """There acknowledged means written."""
    log = opened(new_disk(), TopicConfig(in_memory=True))
    stage_part(log, b"a", (1, 0, 0))
    log.flush()
    assert (log.stable.offset, log.visible.offset) == (0, 1)
    stage_end(log, 1)
    log.flush()
    assert (log.stable.offset, log.visible.offset) == (2, 2)


def test_nothing_of_an_aborted_transaction_is_seen() -> None:
    """From wherever a reader begins, in whatever pieces it reads."""
    _, log = two_lives()
    assert committed_values(log) == [b"2/0"]
    stage_end(log, 3)
    sync(log)
    want = [b"%d/%d" % (pid, number) for number in range(3) for pid in (2, 3)]
    assert len(log.segments) > 2
    for bytes_max in (0, 150, 300, 1 << 20):
        assert committed_values(log, bytes_max) == want
    for start in range(log.next_offset):
        seen = committed_values(log, start=start)
        assert seen == want[len(want) - len(seen) :]
    assert [one[:3] for one in aborted_between(log, 4, 5)] == [(1, 0, 9)]
    assert aborted_between(log, 10, 12) == []


def test_a_reader_is_told_of_aborted_transactions_up_to_what_it_reads_and_no_further() -> None:
    """A thousand of them do not travel with every answer."""
    log = opened(new_disk(), SMALL)
    for number in range(50):
        stage_part(log, b"x", (1, 0, number))
        stage_end(log, 1, commit=False)
        sync(log)
    assert [one.first_offset for one in aborted_between(log, 20, 26)] == [20, 22, 24]
    assert committed_values(log, 0) == []


@pytest.mark.parametrize("keep", ["all", "no index", "no snapshot", "only the log"])
def test_after_a_kill_the_state_is_what_the_log_says(keep: str) -> None:
    """Open transactions, aborted ranges, epochs: believed are the batches alone."""
    disk, log = two_lives()
    log.save_checkpoint()
    stage_part(log, b"late", (4, 0, 0))
    sync(log)
    gone = {"all": (), "no index": (".index",), "no snapshot": (".producers",)}.get(keep, (".index", ".producers"))
    for name in disk.names(FOLDER):
        if name.endswith(gone or "?"):
            disk.remove(f"{FOLDER}/{name}")
    again = opened(disk, SMALL)
    assert again.producers.known == log.producers.known
    assert again.stable.offset == log.stable.offset == 2
    for offset in (2, 11):
        assert again.transactions.open[offset].position == log.transactions.open[offset].position
    assert list(again.transactions.open) == list(log.transactions.open) == [2, 11]
    ranges = [one for segment in again.segments for one in segment.index.aborted]
    assert ranges == [one for segment in log.segments for one in segment.index.aborted] != []
    stage_end(again, 3)
    stage_end(again, 4, commit=False)
    sync(again)
    assert committed_values(again) == [b"%d/%d" % (pid, number) for number in range(3) for pid in (2, 3)]


@pytest.mark.parametrize("ending", [".index", ".producers"])
def test_a_damaged_index_or_snapshot_does_not_change_what_is_committed(ending: str) -> None:
    """Each byte of each of them flipped."""
    disk, log = two_lives()
    stage_end(log, 3)
    sync(log)
    log.close()
    want = committed_values(opened(disk, SMALL))
    assert len(want) == 6
    for name in [name for name in disk.names(FOLDER) if name.endswith(ending)]:
        honest = bytes(bytes_of(disk, f"{FOLDER}/{name}"))
        for position in range(len(honest)):
            overwrite(disk, f"{FOLDER}/{name}", honest[:position] + b"\xff" + honest[position + 1 :])
            assert committed_values(opened(disk, SMALL)) == want
        overwrite(disk, f"{FOLDER}/{name}", honest)


def test_a_marker_that_is_damaged_leaves_its_transaction_undecided() -> None:
    """What cannot be read must not be taken for a commit."""
    disk = new_disk()
    log = opened(disk)
    stage_part(log, b"a", (1, 0, 0))
    stage_end(log, 1, commit=False)
    put(log, batch([b"behind"]))
    data = bytearray(bytes_of(disk, path(0, ".log")))
    at = data.index(b"penstock-range") - 12
    data[at] ^= 1
    overwrite(disk, path(0, ".log"), bytes(data))
    for name in disk.names(FOLDER):
        if name.endswith((".index", ".producers")):
            disk.remove(f"{FOLDER}/{name}")
    again = opened(disk)
    assert again.stable.offset == 0
    assert again.producers.known[1].first_offset == 0


def test_a_failed_write_takes_transactions_back() -> None:
    """Neither the beginning nor the end in it happened; the next try stands where it should."""
    disk = new_disk()
    log = opened(disk)
    stage_part(log, b"a", (1, 0, 0))
    sync(log)
    stage_end(log, 1, commit=False)
    stage_part(log, b"b", (2, 0, 0))
    stage_end(log, 2, commit=False)
    stage_part(log, b"c", (3, 0, 0))
    disk.faults.room = 30
    with pytest.raises(StorageError):
        log.flush()
    disk.faults.calm_down()
    assert list(log.transactions.open) == [0]
    assert log.producers.known[1].first_offset == 0
    assert log.producers.get(2) is None
    stage_part(log, b"d", (2, 0, 0))
    stage_end(log, 1)
    sync(log)
    assert (list(log.transactions.open), log.stable.offset) == ([1], 1)
    assert aborted_between(log, 0, 3) == []
    assert opened(disk).producers.known == log.producers.known


def test_a_marker_with_a_newer_epoch_fences_the_old_one() -> None:
    """And the next transaction begins with sequence 0 (KIP-890)."""
    log = opened(new_disk())
    stage_part(log, b"a", (1, 4, 0))
    stage_end(log, 1, 5)
    assert log.producers.check(1, 4, 1, 1, True) is Fault.FENCED
    assert log.producers.check(1, 5, 1, 1, True) is Fault.OUT_OF_ORDER
    assert log.producers.check(1, 5, 0, 1, True) is None
    stage_part(log, b"b", (1, 5, 0))
    stage_end(log, 1, 5)
    assert log.producers.check(1, 5, 1, 1, True) is None


def test_a_plain_batch_does_not_enter_an_open_transaction() -> None:
    """It would be aborted or held back with records that it does not belong to."""
    log = opened(new_disk())
    stage_part(log, b"a", (1, 0, 0))
    assert log.producers.check(1, 0, 1, 1) is Fault.IN_TRANSACTION
    assert log.producers.check(1, 1, 0, 1) is Fault.IN_TRANSACTION
    assert log.producers.check(1, 0, 1, 1, True) is None
    stage_end(log, 1)
    assert log.producers.check(1, 0, 1, 1) is None


def test_a_producer_with_an_open_transaction_is_never_forgotten() -> None:
    """Neither for its silence nor for want of room: nobody could end it any more."""
    table = ProducerTable(100)
    table.admit(1, 0, 0, 1, 0, NOW_MS, True)
    table.admit(2, 0, 0, 1, 1, NOW_MS)
    for pid in range(3, 150):
        table.admit(pid, 0, 0, 1, pid, NOW_MS + 1)
    table.commit()
    assert len(table.known) == 100
    assert 1 in table.known
    assert 2 not in table.known
    table.expire(NOW_MS + 2)
    assert list(table.known) == [1]
    again = ProducerTable(100)
    decode_snapshot(encode_snapshot(table, 5), again)
    assert again.known == table.known


def test_deleting_records_of_an_open_transaction_moves_the_stable_end_on() -> None:
    """It never lies before the start; and what is left of the transaction is undecided still."""
    disk = new_disk()
    log = opened(disk, SMALL)
    for number in range(6):
        stage_part(log, b"x" * 100, (1, 0, number))
        sync(log)
    log.advance_start(4)
    assert (log.start_offset, log.stable.offset, len(log.segments)) == (4, 4, 1)
    assert committed_values(log) == []
    again = opened(disk, SMALL)
    again.advance_start(4)
    assert (again.stable.offset, list(again.transactions.open)) == (4, [0])
    stage_end(again, 1)
    sync(again)
    assert again.stable.offset == 7
    assert committed_values(again) == [b"x" * 100] * 2


def test_what_is_deleted_takes_its_aborted_ranges_along() -> None:
    """They stand in the index of the segment that holds the marker."""
    log = opened(new_disk(), SMALL)
    for number in range(9):
        stage_part(log, b"x" * 100, (1, 0, number))
        stage_end(log, 1, commit=False)
        sync(log)
    assert sum(len(segment.index.aborted) for segment in log.segments) == 9
    log.advance_start(10)
    kept = [one for segment in log.segments for one in segment.index.aborted]
    assert [one.last_offset for one in kept] == list(range(log.segments[0].base_offset + 1, 18, 2))
    assert committed_values(log) == []


def test_fillers_are_no_markers() -> None:
    """A control batch of no producer ends no transaction."""
    log = opened(new_disk())
    stage_part(log, b"a", (1, 0, 0))
    log.append(encode_filler(1, 5, NOW_MS), 3, NOW_MS, NOW_MS)
    sync(log)
    assert decode_header(read(log, 1, 1000)).is_control
    assert (log.stable.offset, log.visible.offset) == (0, 5)
    assert isinstance(log.disk, FakeDisk)
    assert opened(log.disk).stable.offset == 0
