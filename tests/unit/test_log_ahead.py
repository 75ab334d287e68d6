"""Small groups are written into zeros that stand there already: quicker to sync, and nobody ever reads them."""

from __future__ import annotations

import pytest
from stage.batches import batch
from stage.logs import FOLDER, bytes_of, new_disk, opened, path, put, read_all, stage, sync

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.queue.log.inspection import inspect_partition
from penstock.queue.log.log import Log
from penstock.queue.log.segment import AHEAD_BYTES
from proof.sim.disk import FakeDisk
from proof.sim.inode import Mood

PAGE = 4096
LARGE = bytes(AHEAD_BYTES // 4)
LOG = path(0, ".log")
SMALL = TopicConfig(segment_bytes=PAGE)


def size(disk: FakeDisk, log: str = LOG) -> int:
    return len(bytes_of(disk, log))


def cut_and_begun() -> tuple[FakeDisk, Log]:
    """A segment that was cut to its size, and a group written behind it in the next one: neither is synced."""
    disk = new_disk()
    log = opened(disk, SMALL)
    put(log, batch([bytes(3000)]))
    stage(log, batch([bytes(3000)]))
    log.flush()
    return disk, log


def test_zeros_stand_behind_the_log_and_no_reader_sees_them() -> None:
    disk = new_disk()
    log = opened(disk)
    put(log, batch([bytes(3000)]))
    assert size(disk) == PAGE < 2 * log.active.end
    put(log, batch([bytes(500)]), batch([bytes(10)]))
    assert size(disk) == PAGE, "they were written into it"
    put(log, batch([bytes(2000)]))
    assert size(disk) == 2 * PAGE
    assert not bytes_of(disk, LOG)[log.active.end :].strip(b"\0")
    assert sum(map(len, read_all(log))) == log.active.end


def test_a_log_of_little_takes_little() -> None:
    """Ten thousand partitions with a record each must not fill the disk with zeros."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"a few bytes"]))
    assert size(disk) == log.active.end


def test_a_large_group_is_not_written_twice() -> None:
    disk = new_disk()
    log = opened(disk)
    put(log, batch([LARGE]))
    assert size(disk) == log.active.end


def test_never_more_than_a_bound_stands_ahead() -> None:
    disk = new_disk()
    log = opened(disk)
    for _ in range(20):
        put(log, batch([LARGE]))
    put(log, batch([b"small"]))
    assert 0 < size(disk) - log.active.end <= AHEAD_BYTES


def test_a_memory_topic_has_no_use_for_it() -> None:
    disk = new_disk()
    log = opened(disk, TopicConfig(in_memory=True))
    put(log, batch([bytes(3000)]))
    assert size(disk) == log.active.end


@pytest.mark.parametrize("mood", [Mood.NOTHING, Mood.EVERYTHING])
def test_after_a_power_cut_all_that_was_acknowledged_is_there_and_the_zeros_are_no_damage(mood: Mood) -> None:
    disk = new_disk()
    log = opened(disk)
    put(log, batch([bytes(3000)]), batch([b"second"]))
    assert log.active.is_ahead
    before = read_all(log)
    disk.cut_power(mood)
    assert not any("zero" in found.what for found in inspect_partition(disk, FOLDER))
    again = opened(disk)
    assert (read_all(again), again.torn, again.segments[0].damages) == (before, [], [])


def test_a_full_segment_is_cut_to_its_size_before_anything_stands_behind_it() -> None:
    disk = new_disk()
    config = TopicConfig(segment_bytes=PAGE)
    log = opened(disk, config)
    put(log, batch([bytes(3000)]), batch([bytes(3000)]))
    first, second = log.segments
    assert size(disk) == first.end < PAGE
    before = read_all(log)
    disk.cut_power(Mood.NOTHING)
    again = opened(disk, config)
    assert (read_all(again), [s.damages for s in again.segments]) == (before, [[], []])
    assert second.base_offset == 1


def test_a_full_segment_stays_cut_through_a_kill_and_then_a_power_cut() -> None:
    """Recovery shows what stands behind it, so the cut must be durable by then."""
    disk, log = cut_and_begun()
    assert len(log.segments) == 2
    before = read_all(opened(disk, SMALL))
    disk.cut_power(Mood.NOTHING)
    again = opened(disk, SMALL)
    assert (read_all(again), [s.damages for s in again.segments]) == (before, [[], []])
    assert len(before) == 2


def test_a_full_segment_stays_cut_when_the_first_group_behind_it_is_written_after_a_restart() -> None:
    """A full disk may keep the next segment empty; whoever writes to it later no longer knows of the cut."""
    disk = new_disk()
    log = opened(disk, SMALL)
    put(log, batch([bytes(3000)]))
    log.roll()
    put(opened(disk, SMALL), batch([b"behind"]))
    disk.cut_power(Mood.NOTHING)
    again = opened(disk, SMALL)
    assert [s.damages for s in again.segments] == [[], []]
    assert len(read_all(again)) == 2


def test_a_full_segment_stays_cut_though_the_sync_of_the_cut_had_failed() -> None:
    """What a failed sync covered counts as clean, so recovery cuts again."""
    disk, log = cut_and_begun()
    disk.faults.rates = {"sync": 1.0}
    with pytest.raises(OSError, match="Input/output"):
        log.begin_sync().files[0].sync()
    log.stop("a sync failed")
    disk.faults.calm_down()
    before = read_all(opened(disk, SMALL))
    disk.cut_power(Mood.NOTHING)
    again = opened(disk, SMALL)
    assert (read_all(again), [s.damages for s in again.segments]) == (before, [[], []])


def test_a_clean_stop_leaves_files_of_their_size() -> None:
    """Kafka's tools read them."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([bytes(3000)]))
    end = log.active.end
    log.close()
    assert size(disk) == end


def test_a_disk_that_has_room_for_the_group_alone_takes_the_group() -> None:
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"first"]))
    disk.faults.room = 3200
    put(log, batch([bytes(3000)]))
    assert log.next_offset == 2
    stage(log, batch([bytes(3000)]))
    with pytest.raises(StorageError):
        log.flush()
    disk.faults.calm_down()
    stage(log, batch([b"third"]))
    sync(log)
    assert len(read_all(log)) == 3
