"""Reading: whole batches from every offset within every limit; offsets by time, exactly."""

from __future__ import annotations

import pytest
from stage.batches import GZIP, LZ4, NONE, NOW_MS, SNAPPY, ZSTD, batch, raw_batch
from stage.logs import cut, new_disk, opened, put, read_all, stage

from penstock.config.topic import TopicConfig
from penstock.kafka.records.batch import decode_header
from penstock.queue.log.log import Log
from penstock.queue.log.reading import offset_for_time, offset_of_latest_time, read
from penstock.queue.log.retention import plan_start, should_roll

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]


def many(config: TopicConfig | None = None) -> Log:
    """Batches of one to four records and of different sizes."""
    log = opened(new_disk(), config)
    put(log, *(batch([b"x" * (n * 37 % 90)] * (n % 4 + 1)) for n in range(12)))
    return log


@pytest.mark.parametrize("config", [TopicConfig(), TopicConfig(segment_bytes=700)], ids=["one-segment", "segments"])
def test_reading_from_every_offset_with_every_limit_gives_whole_batches(config: TopicConfig) -> None:
    """The first holds the offset, at least one comes, and more only if they fit."""
    log = many(config)
    batches = read_all(log)
    holder = {
        offset: found
        for found in batches
        for offset in range(decode_header(found).base_offset, decode_header(found).next_offset)
    }
    for offset in range(log.next_offset):
        for bytes_max in (0, 1, 61, 62, 100, 150, 151, 299, 500, 1000, 5000):
            log.boundaries.clear()
            found = cut(read(log, offset, bytes_max))
            assert found[0] == holder[offset]
            start = batches.index(found[0])
            assert found == batches[start : start + len(found)]
            assert len(found) == 1 or sum(map(len, found)) <= bytes_max


def test_reading_on_where_the_last_read_ended_gives_the_same() -> None:
    """Remembered positions are a shortcut, not another truth."""
    log = many()
    whole = b"".join(read_all(log))
    for bytes_max in (61, 150, 400):
        offset, found = 0, b""
        while offset < log.visible.offset:
            some = read(log, offset, bytes_max)
            found += some
            offset = decode_header(cut(some)[-1]).next_offset
        assert found == whole


def test_a_batch_larger_than_asked_for_costs_no_more_than_itself() -> None:
    """What stands behind it may not be in memory, and nobody has asked for it."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([bytes(100_000)]) for _ in range(5)))
    log.boundaries.clear()
    disk.forget()
    (found,) = cut(read(log, 0, 100))
    assert sum(cold for _, cold in disk.pages.cold_reads) <= len(found)


def test_what_is_skipped_counts_as_read() -> None:
    """A read begins at an entry of the index: what it skips there, it does not read more behind its end."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([bytes(1000)]) for _ in range(4)))
    size = log.visible.position // 4
    log.boundaries.clear()
    disk.forget()
    (found,) = cut(read(log, 2, size + size // 2))
    assert decode_header(found).base_offset == 2
    assert sum(cold for _, cold in disk.pages.cold_reads) <= 3 * size


def test_at_the_end_there_is_nothing() -> None:
    """Not an error: the next record has not come yet."""
    log = many()
    assert len(read(log, log.next_offset, 1000)) == 0


def test_an_index_finds_its_way_in_a_long_segment() -> None:
    """Thousands of batches, read from anywhere, with a fresh index and with a saved one."""
    disk = new_disk()
    log = opened(disk)
    for _ in range(1500):
        stage(log, batch([b"y" * 150] * 2))
    put(log, batch())
    log.close()
    for found in (log, opened(disk)):
        assert len(found.active.index.offsets) > 3
        for offset in (0, 1, 777, 1500, 2999, 3000):
            assert decode_header(read(found, offset, 100)).base_offset == offset - offset % 2


def times_of(log: Log) -> list[int]:
    return [NOW_MS + found for found in (0, 40, 20, 60, 60, 50, 90)]


def timed(codec: int) -> Log:
    log = opened(new_disk())
    stamps = times_of(log)
    put(log, *(batch([b"v"] * len(part), stamps=part, codec=codec) for part in (stamps[:3], stamps[3:5], stamps[5:])))
    return log


@pytest.mark.parametrize("codec", CODECS)
def test_the_first_record_at_or_after_a_time_is_found_exactly(codec: int) -> None:
    """Not the first of its batch: the very record, compressed or not, in order or not."""
    log = timed(codec)
    stamps = times_of(log)
    for time in range(NOW_MS - 5, NOW_MS + 96):
        want = next(((stamp, offset) for offset, stamp in enumerate(stamps) if stamp >= time), None)
        assert offset_for_time(log, time) == want
    assert offset_of_latest_time(log) == (NOW_MS + 90, 6)


def test_times_are_found_over_segments_and_not_below_the_start() -> None:
    """What was deleted is not found; the first of equal latest times is."""
    log = opened(new_disk(), TopicConfig(segment_bytes=300))
    put(log, *(batch([b"x" * 100], stamps=[NOW_MS + stamp]) for stamp in (50, 10, 90, 20, 90, 30)))
    assert len(log.segments) > 2
    assert offset_for_time(log, NOW_MS + 11) == (NOW_MS + 50, 0)
    assert offset_for_time(log, NOW_MS + 51) == (NOW_MS + 90, 2)
    assert offset_of_latest_time(log) == (NOW_MS + 90, 2)
    log.advance_start(3)
    assert offset_for_time(log, NOW_MS) == (NOW_MS + 20, 3)
    assert offset_of_latest_time(log) == (NOW_MS + 90, 4)
    log.advance_start(5)
    assert offset_of_latest_time(log) == (NOW_MS + 30, 5)


def test_the_latest_time_is_one_that_can_be_read() -> None:
    """Deleted records do not count, nor do those that are not durable yet."""
    log = opened(new_disk())
    put(log, batch([b"a", b"b"], stamps=[NOW_MS + 99, NOW_MS]), batch([b"c"], stamps=[NOW_MS + 5]))
    log.advance_start(1)
    assert offset_of_latest_time(log) == (NOW_MS + 5, 2)
    stage(log, batch([b"d"], stamps=[NOW_MS + 200]))
    log.flush()
    assert offset_of_latest_time(log) == (NOW_MS + 5, 2)
    assert offset_for_time(log, NOW_MS + 100) is None


def test_an_empty_log_has_no_times() -> None:
    log = opened(new_disk())
    assert offset_for_time(log, 0) is None
    assert offset_of_latest_time(log) is None


def test_malformed_records_are_found_as_a_batch() -> None:
    """A batch that does not open still has the time its header says."""
    log = opened(new_disk())
    put(log, batch([b"ok"], stamps=[5]), raw_batch(b"junk", 2, [NOW_MS, NOW_MS + 7]))
    assert offset_for_time(log, NOW_MS) == (NOW_MS + 7, 1)
    assert offset_of_latest_time(log) == (NOW_MS + 7, 1)


def test_segments_go_when_all_in_them_is_too_old() -> None:
    """retention.ms looks at the newest record of a segment; the active one stays until it is rolled."""
    log = opened(new_disk(), TopicConfig(segment_bytes=400, retention_ms=1000))
    put(log, *(batch([b"x" * 250], stamps=[NOW_MS + stamp]) for stamp in (0, 500, 100, 2000)))
    assert plan_start(log, NOW_MS + 1000) == 0
    assert plan_start(log, NOW_MS + 1001) == 1
    assert plan_start(log, NOW_MS + 1501) == 3
    assert plan_start(log, NOW_MS + 9000) == 3
    assert should_roll(log, NOW_MS + 3001)
    assert not should_roll(log, NOW_MS + 3000)


def test_segments_go_when_there_are_too_many_bytes() -> None:
    """retention.bytes is kept as a minimum: what is left without a segment must still reach it."""
    log = opened(new_disk(), TopicConfig(segment_bytes=400, retention_ms=-1, retention_bytes=700))
    put(log, *(batch([b"x" * 250]) for _ in range(5)))
    size = log.segments[0].end
    assert plan_start(log, NOW_MS) == 5 - -(-700 // size)


def test_without_limits_nothing_goes() -> None:
    log = opened(new_disk(), TopicConfig(segment_bytes=400, retention_ms=-1, retention_bytes=-1))
    put(log, *(batch([b"x" * 250], stamps=[0]) for _ in range(5)))
    assert plan_start(log, NOW_MS) == 0
    assert not should_roll(log, NOW_MS)


def test_retention_never_goes_beyond_what_is_durable() -> None:
    """What is being synced is being waited for."""
    log = opened(new_disk(), TopicConfig(segment_bytes=400, retention_ms=1000))
    put(log, batch([b"x" * 250], stamps=[0]))
    for _ in range(3):
        stage(log, batch([b"x" * 250], stamps=[0]))
    log.flush()
    assert plan_start(log, NOW_MS) == 1
    assert not should_roll(log, NOW_MS)
