"""Memory topics: visible once written, and offsets that never go back."""

from __future__ import annotations

import pytest
from stage.batches import NOW_MS, batch
from stage.logs import LIMITS, new_disk, opened, put, read_all, stage, sync
from stage.transactions import committed_values, stage_end, stage_part

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.record import decode_records
from penstock.queue.log.reading import offset_of_latest_time, read
from proof.sim.inode import Mood

MEMORY = TopicConfig(in_memory=True)


def test_records_are_visible_as_soon_as_they_are_written() -> None:
    """Nobody waits for the disk."""
    log = opened(new_disk(), MEMORY)
    stage(log, batch([b"a"]))
    log.flush()
    assert (log.visible.offset, log.durable.offset) == (1, 0)
    assert len(read_all(log)) == 1


@pytest.mark.parametrize("mood", list(Mood))
def test_offsets_never_go_back_after_a_power_cut(mood: Mood) -> None:
    """A consumer that has read offset n must never be given another record as n."""
    for seed in range(20):
        disk = new_disk()
        disk.chance.seed(seed)
        seen = 0
        for life in range(4):
            log = opened(disk, MEMORY)
            assert log.next_offset >= seen
            for _ in range(life + 1):
                stage(log, batch([b"a"] * 100))
                log.flush()
            seen = log.visible.offset
            disk.cut_power(mood)


def test_the_gap_is_filled_by_a_batch_without_records() -> None:
    """Readers step over it like over any other batch; Kafka's tools, too."""
    disk = new_disk()
    log = opened(disk, MEMORY)
    put(log, batch([b"kept"]))
    stage(log, batch([b"lost"] * 10))
    log.flush()
    disk.cut_power(Mood.NOTHING)
    again = opened(disk, MEMORY)
    assert again.next_offset >= 11
    kept, filler = read_all(again)
    assert [record.value for record in decode_records(kept)] == [b"kept"]
    assert list(decode_records(filler)) == []
    assert decode_header(filler).next_offset == again.next_offset
    (offset,) = put(again, batch([b"new"]))
    assert decode_header(read(again, offset, 100)).base_offset == offset
    assert offset_of_latest_time(again) == (NOW_MS, 0)


def test_a_clean_stop_leaves_no_gap() -> None:
    """Only what may have been given out without being kept is skipped."""
    disk = new_disk()
    log = opened(disk, MEMORY)
    put(log, batch([b"a"] * 5))
    log.close()
    again = opened(disk, MEMORY)
    assert again.next_offset == 5
    assert len(read_all(again)) == 1


def test_offsets_are_reserved_ahead_not_with_every_group() -> None:
    """One sync for many groups, or memory would be as slow as disk."""
    disk = new_disk()
    log = opened(disk, MEMORY)
    stage(log, batch())
    log.flush()
    syncs = disk.inode("p/durable").durable_version
    for _ in range(LIMITS.memory_reserve - 1):
        stage(log, batch())
        log.flush()
    assert disk.inode("p/durable").durable_version == syncs
    stage(log, batch([b"a"] * 10))
    log.flush()
    assert disk.inode("p/durable").durable_version == syncs + 1


def test_a_reserve_that_cannot_be_made_durable_refuses_the_group() -> None:
    """Offsets that might be given twice are not given at all."""
    disk = new_disk()
    log = opened(disk, MEMORY)
    stage(log, batch())
    disk.faults.rates = {"sync": 1.0}
    with pytest.raises(StorageError, match="Input/output"):
        log.flush()
    assert (log.visible.offset, log.next_offset) == (0, 0)


def test_a_lost_marker_is_not_taken_for_the_next() -> None:
    """What was aborted stays unseen when the power cut took the abort and the same producer commits again."""
    disk = new_disk()
    log = opened(disk, MEMORY)
    stage_part(log, b"aborted", (1, 0, 0))
    sync(log)
    stage_end(log, 1, commit=False)
    log.flush()
    disk.cut_power(Mood.NOTHING)
    again = opened(disk, MEMORY)
    stage_part(again, b"committed", (1, 1, 0))
    stage_end(again, 1, epoch=1)
    again.flush()
    assert committed_values(again) == [b"committed"]
