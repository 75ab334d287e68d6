"""Appending: staged, written, durable, visible, in this order; a failed group never happened."""

from __future__ import annotations

import pytest
from stage.batches import NOW_MS, batch
from stage.logs import FOLDER, bytes_of, cut, new_disk, opened, path, put, read_all, stage, sync

from penstock.config.setting import MIB
from penstock.config.topic import TopicConfig
from penstock.errors import InvariantError, StorageError
from penstock.kafka.records.batch import decode_header
from penstock.queue.log.reading import read
from proof.sim.inode import Mood


def test_a_batch_is_visible_only_when_it_is_durable() -> None:
    """Consumers never see what a power cut could take back."""
    disk = new_disk()
    log = opened(disk)
    assert stage(log, batch([b"a", b"b"])) == 0
    assert not disk.inode(path(0, ".log")).data
    log.flush()
    assert len(bytes_of(disk, path(0, ".log"))) == log.active.end
    assert len(read(log, 0, MIB)) == 0
    files, folders = log.begin_sync()
    assert folders == []
    assert f"{0:020d}.log" in disk.folder(FOLDER).durable_names
    assert len(read(log, 0, MIB)) == 0
    for file in files:
        file.sync()
    log.end_sync()
    assert log.visible.offset == 2
    assert [decode_header(found).base_offset for found in cut(read(log, 0, MIB))] == [0]


def test_a_sync_covers_what_was_written_before_it_began() -> None:
    """What comes while a sync runs waits for the next one."""
    log = opened(new_disk())
    stage(log, batch([b"a"]))
    log.flush()
    log.begin_sync()
    stage(log, batch([b"b"]))
    log.flush()
    assert not log.needs_sync
    log.end_sync()
    assert (log.durable.offset, log.visible.offset, log.written.offset) == (1, 1, 2)
    assert log.needs_sync


def test_two_syncs_at_a_time_are_our_own_fault() -> None:
    """The second could end first and claim what the first has not made durable."""
    log = opened(new_disk())
    stage(log, batch())
    log.flush()
    log.begin_sync()
    with pytest.raises(InvariantError):
        log.begin_sync()


def test_a_group_is_one_write() -> None:
    """All batches of a group reach the file with one call."""
    disk = new_disk()
    log = opened(disk)
    offsets = [stage(log, batch([b"x"] * n)) for n in (1, 2, 3)]
    before = disk.inode(path(0, ".log")).version
    log.flush()
    assert disk.inode(path(0, ".log")).version == before + 1
    assert offsets == [0, 1, 3]
    assert log.written.offset == 6


@pytest.mark.parametrize("room", [0, 1, 61, 100])
def test_a_full_disk_leaves_nothing_of_the_group(room: int) -> None:
    """The torn tail is cut, offsets go on as if nothing happened, and the next append works."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"before"], producer=(5, 0, 0)))
    end = log.active.end
    stage(log, batch([b"lost"] * 30, producer=(5, 0, 1)))
    stage(log, batch([b"lost too"], producer=(6, 0, 0)))
    disk.faults.room = room
    with pytest.raises(StorageError, match="No space"):
        log.flush()
    assert len(bytes_of(disk, path(0, ".log"))) == end
    assert (log.next_offset, log.stopped) == (1, None)
    assert 6 not in log.producers.known
    disk.faults.room = None
    assert put(log, batch([b"after"], producer=(5, 0, 1))) == [1]
    assert len(read_all(log)) == 2
    assert len(read_all(opened(disk))) == 2


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_torn_tail_that_was_cut_does_not_come_back(is_killed: bool) -> None:
    """Also not with a power cut when the segment is no longer the last, where it would be damage."""
    for seed in range(20):
        disk = new_disk()
        disk.chance.seed(seed)
        log = opened(disk)
        put(log, batch([b"before"]))
        stage(log, batch([b"lost"] * 30))
        disk.faults.room = 100
        with pytest.raises(StorageError, match="No space"):
            log.flush()
        disk.faults.room = None
        if not is_killed:
            log.close()
        again = opened(disk)
        again.roll()
        put(again, batch([b"after"]))
        disk.cut_power(Mood.MIXED)
        last = opened(disk)
        assert len(read_all(last)) == 2
        assert not any(segment.damages for segment in last.segments)


def test_a_torn_tail_that_cannot_be_cut_stops_the_partition() -> None:
    """Appending behind unknown bytes would bury them in the log."""
    disk = new_disk()
    log = opened(disk)
    stage(log, batch([b"lost"] * 30))
    disk.faults.room = 10
    disk.faults.rates = {"truncate": 1.0}
    with pytest.raises(StorageError):
        log.flush()
    assert log.stopped is not None
    disk.faults.calm_down()
    stage(log, batch())
    with pytest.raises(StorageError):
        log.flush()
    assert not log.needs_sync


def test_a_stopped_log_takes_nothing_but_is_still_read() -> None:
    """After a failed sync nothing more is written; what was durable before stays there for readers."""
    log = opened(new_disk())
    put(log, batch([b"a"]))
    stage(log, batch([b"b"]))
    log.flush()
    log.begin_sync()
    log.stop("a sync failed")
    assert not log.needs_sync
    assert len(cut(read(log, 0, MIB))) == 1
    stage(log, batch([b"c"]))
    with pytest.raises(StorageError, match="a sync failed"):
        log.flush()


def test_a_new_segment_begins_when_the_old_one_is_full() -> None:
    """Segments keep to segment.bytes, and a reader does not notice them."""
    disk = new_disk()
    log = opened(disk, TopicConfig(segment_bytes=1000))
    put(log, *(batch([b"x" * 300]) for _ in range(7)))
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    assert all(segment.end <= 1000 for segment in log.segments)
    assert [decode_header(found).base_offset for found in read_all(log)] == list(range(7))
    assert read_all(opened(disk)) == read_all(log)


def test_a_batch_larger_than_a_segment_gets_one_of_its_own() -> None:
    """max.message.bytes decides what is too large, not the segment."""
    log = opened(new_disk(), TopicConfig(segment_bytes=1000))
    assert put(log, batch([b"x" * 3000]), batch([b"y" * 3000]), batch([b"z"])) == [0, 1, 2]
    assert len(log.segments) == 3
    assert len(read_all(log)) == 3


def test_a_new_segment_begins_when_the_old_one_is_old() -> None:
    """segment.ms counts from the first batch of a segment."""
    log = opened(new_disk(), TopicConfig(segment_ms=1000))
    put(log, batch(), now_ms=NOW_MS)
    put(log, batch(), now_ms=NOW_MS + 1000)
    assert len(log.segments) == 1
    put(log, batch(), now_ms=NOW_MS + 1001)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_sync_after_a_roll_covers_both_segments_and_the_folder() -> None:
    """The old tail, the new file and its name are one group."""
    disk = new_disk()
    log = opened(disk, TopicConfig(segment_bytes=500))
    put(log, batch([b"a"]))
    stage(log, batch([b"b"]))
    stage(log, batch([b"c" * 450]))
    log.flush()
    files, folders = log.begin_sync()
    assert sorted(file.path for file in files) == [path(0, ".log"), path(2, ".log")]
    assert folders == [FOLDER]


@pytest.mark.parametrize("call", range(1, 9))
def test_whichever_disk_call_of_a_roll_fails_nothing_is_lost(call: int) -> None:
    """The group before is whole, the batch that wanted a new segment is refused, the next one is taken."""
    disk = new_disk()
    log = opened(disk, TopicConfig(segment_bytes=500))
    put(log, batch([b"a" * 300]))
    disk.faults.fail_at = disk.faults.calls + call
    try:
        stage(log, batch([b"b" * 300]))
        log.flush()
        stored = 2
    except StorageError:
        stored = 1
    disk.faults.calm_down()
    sync(log)
    assert len(read_all(log)) == stored
    put(log, batch([b"c" * 300]))
    assert len(read_all(log)) == stored + 1
    again = opened(disk, TopicConfig(segment_bytes=500))
    assert read_all(again) == read_all(log)


def test_the_start_of_a_log_moves_forward_only() -> None:
    """DeleteRecords and retention remove whole segments; the active one stays."""
    disk = new_disk()
    log = opened(disk, TopicConfig(segment_bytes=500))
    put(log, *(batch([b"x" * 300]) for _ in range(5)))
    log.advance_start(3)
    assert (log.start_offset, [segment.base_offset for segment in log.segments]) == (3, [3, 4])
    log.advance_start(1)
    assert log.start_offset == 3
    log.advance_start(99)
    assert (log.start_offset, [segment.base_offset for segment in log.segments]) == (5, [4])
    assert [name for name in disk.names(FOLDER) if name.endswith(".log")] == ["00000000000000000004.log"]
    assert put(log, batch()) == [5]


def test_removed_segments_leave_no_hole_after_a_power_cut() -> None:
    """They go one at a time, oldest first, each for good before the next."""
    disk = new_disk()
    log = opened(disk, TopicConfig(segment_bytes=500))
    put(log, *(batch([b"x" * 300]) for _ in range(5)))
    disk.faults.fail_at = 1
    disk.faults.calls = -3
    with pytest.raises(OSError, match="p"):
        log.advance_start(5)
    disk.faults.calm_down()
    left = [int(name[:20]) for name in disk.names(FOLDER) if name.endswith(".log")]
    assert left == list(range(left[0], 5))


def test_a_clean_close_leaves_nothing_to_scan() -> None:
    """Index, producers and the durable point are saved; the next start reads no batch."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([b"x" * 100], producer=(9, 0, n)) for n in range(8)))
    log.close()
    again = opened(disk)
    assert (again.next_offset, again.visible.offset) == (8, 8)
    assert again.producers.known == log.producers.known
    assert read_all(again) == read_all(log)
    sync(again)
    assert not again.needs_sync
