"""Opening a partition after any kind of stop: nothing acknowledged is lost, only an unacknowledged tail is cut."""

from __future__ import annotations

import pytest
from stage.batches import batch
from stage.logs import FOLDER, bytes_of, new_disk, opened, overwrite, path, put, read_all, stage, sync

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError, SyncFailedError
from penstock.kafka.records.batch import decode_header
from penstock.queue.log.durable_point import DurablePoint, decode_durable_point, encode_durable_point
from penstock.queue.log.inspection import inspect_partition
from penstock.queue.log.log import Log
from penstock.queue.log.reading import DamagedError, read
from proof.sim.disk import FakeDisk
from proof.sim.inode import Mood

SMALL = TopicConfig(segment_bytes=500)
WITNESS = f"{FOLDER}/durable"


def three_batches() -> tuple[FakeDisk, Log]:
    """Three acknowledged batches of one record, in one segment."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([name]) for name in (b"one", b"two", b"three")))
    return disk, log


def torn(disk: FakeDisk) -> list[str]:
    return [name for name in disk.names(FOLDER) if name.endswith(".torn")]


def offsets(log: Log) -> list[int]:
    return [decode_header(found).base_offset for found in read_all(log)]


def test_after_a_kill_all_that_was_acknowledged_is_there() -> None:
    """The page cache outlives the process."""
    disk, log = three_batches()
    again = opened(disk)
    assert read_all(again) == read_all(log)
    assert put(again, batch()) == [3]


@pytest.mark.parametrize("size", [1, 30, 61, 80])
def test_a_torn_tail_behind_the_witness_is_cut_and_kept_beside_the_log(size: int) -> None:
    """It was never acknowledged; its bytes are still not thrown away."""
    disk, log = three_batches()
    whole = bytes(bytes_of(disk, path(0, ".log")))
    tail = bytes(batch([b"never acknowledged" * 3]))[:size].replace(b"\0", b"\1")
    overwrite(disk, path(0, ".log"), whole + tail)
    again = opened(disk)
    assert (again.next_offset, offsets(again)) == (3, [0, 1, 2])
    assert bytes(bytes_of(disk, path(0, ".log"))) == whole
    assert torn(disk) == [f"{0:020d}-{len(whole)}.torn"] == again.torn
    assert bytes(bytes_of(disk, f"{FOLDER}/{torn(disk)[0]}")) == tail
    assert put(again, batch()) == [3]
    assert read_all(opened(disk)) == read_all(again)
    assert read_all(log) == read_all(again)[:3]


def test_a_tail_of_zeros_is_cut_and_not_kept() -> None:
    """A file system may leave the size of a write without its bytes."""
    disk, _ = three_batches()
    whole = bytes(bytes_of(disk, path(0, ".log")))
    overwrite(disk, path(0, ".log"), whole + bytes(700))
    assert offsets(opened(disk)) == [0, 1, 2]
    assert bytes(bytes_of(disk, path(0, ".log"))) == whole
    assert torn(disk) == []


def test_a_whole_tail_behind_the_witness_is_kept_and_made_durable() -> None:
    """It may have been on its way to an acknowledgement; nobody may see it before it is on disk."""
    disk, log = three_batches()
    stage(log, batch([b"written, not synced"]))
    log.flush()
    again = opened(disk)
    assert offsets(again) == [0, 1, 2, 3]
    disk.cut_power(Mood.NOTHING)
    assert offsets(opened(disk)) == [0, 1, 2, 3]


def test_without_a_witness_the_whole_log_is_checked() -> None:
    """A lost witness costs time, not records; a torn end is still cut, since nothing whole stands behind it."""
    disk, _ = three_batches()
    whole = bytes(bytes_of(disk, path(0, ".log")))
    overwrite(disk, path(0, ".log"), whole + b"torn")
    disk.remove(WITNESS)
    assert offsets(opened(disk)) == [0, 1, 2]
    assert torn(disk) == [f"{0:020d}-{len(whole)}.torn"]


def test_without_a_witness_damage_in_the_middle_is_kept() -> None:
    """What stands behind it was acknowledged, so it must have been too."""
    disk, _ = three_batches()
    size = len(batch([b"one"]))
    data = bytes_of(disk, path(0, ".log"))
    disk.inode(path(0, ".log")).flip(size + 65, 3)
    disk.remove(WITNESS)
    before = bytes(data)
    again = opened(disk)
    assert bytes(bytes_of(disk, path(0, ".log"))) == before
    assert again.next_offset == 3
    with pytest.raises(DamagedError) as damaged:
        read(again, 1, 1000)
    assert damaged.value.damage.next_offset == 2
    assert decode_header(read(again, 2, 1000)).base_offset == 2
    assert torn(disk) == []


def test_an_old_witness_is_a_sound_lower_bound() -> None:
    """After a power cut it may be older than what was acknowledged; that is whole, and stays."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"one"]))
    old = bytes(bytes_of(disk, WITNESS))
    put(log, batch([b"two"]), batch([b"three"]))
    overwrite(disk, WITNESS, old)
    assert offsets(opened(disk)) == [0, 1, 2]


def test_a_damaged_end_below_the_witness_is_never_written_over() -> None:
    """The last acknowledged batch is damaged: it stays, and new records get offsets behind it."""
    disk, _ = three_batches()
    data = bytes(bytes_of(disk, path(0, ".log")))
    last = len(data) - len(batch([b"three"]))
    for position in (last, last + 9, last + 11, last + 16, last + 26, last + 64):
        other = bytearray(data)
        other[position] ^= 0x41
        overwrite(disk, path(0, ".log"), bytes(other))
        again = opened(disk)
        assert again.next_offset >= 3
        with pytest.raises(DamagedError):
            read(again, 2, 1000)
        (offset,) = put(again, batch([b"new"]))
        assert offset >= 3
        assert bytes(bytes_of(disk, path(0, ".log")))[: len(data)] == bytes(other)
        assert decode_header(read(again, offset, 1000)).base_offset == offset
        assert decode_header(read(opened(disk), offset, 1000)).base_offset == offset
        restart(disk, data)


def restart(disk: FakeDisk, data: bytes) -> None:
    """Put the three batches back as they were, and nothing else."""
    for name in disk.names(FOLDER):
        if name not in ("durable", f"{0:020d}.log"):
            disk.remove(f"{FOLDER}/{name}")
    overwrite(disk, path(0, ".log"), data)
    witness = DurablePoint(9, 3, 0, len(data), 0)
    overwrite(disk, WITNESS, bytes(512) + encode_durable_point(witness) + bytes(468))


@pytest.mark.parametrize("missing", [1, 40, 70, 150])
def test_an_end_cut_off_below_the_witness_is_a_gap_not_a_new_beginning(missing: int) -> None:
    """Acknowledged offsets are never given out again, even if their records are gone."""
    disk, _ = three_batches()
    data = bytes(bytes_of(disk, path(0, ".log")))
    overwrite(disk, path(0, ".log"), data[:-missing])
    again = opened(disk)
    assert again.next_offset == 3
    assert put(again, batch()) == [3]
    with pytest.raises(DamagedError):
        read(again, 2, 1000)
    assert decode_header(read(again, 3, 1000)).base_offset == 3


def test_the_segment_begun_behind_a_damaged_end_survives_a_power_cut() -> None:
    """Its name is made durable before anything in it is acknowledged."""
    disk, _ = three_batches()
    data = bytes(bytes_of(disk, path(0, ".log")))
    overwrite(disk, path(0, ".log"), data[:-1])
    put(opened(disk), batch([b"acknowledged"]))
    disk.cut_power(Mood.NOTHING)
    again = opened(disk)
    assert again.next_offset == 4
    assert decode_header(read(again, 3, 1000)).base_offset == 3


def test_missing_log_files_are_not_an_empty_log() -> None:
    """Starting again at 0 would give acknowledged offsets to other records."""
    disk, _ = three_batches()
    disk.remove(path(0, ".log"))
    with pytest.raises(StorageError, match="missing"):
        opened(disk)


def test_a_missing_segment_in_the_middle_is_an_error_to_its_readers_only() -> None:
    """Before and behind it everything is readable, and nothing is removed."""
    disk = new_disk()
    put(opened(disk, SMALL), *(batch([b"x" * 300]) for _ in range(5)))
    disk.remove(path(2, ".log"))
    again = opened(disk, SMALL)
    with pytest.raises(DamagedError) as damaged:
        read(again, 2, 1000)
    assert damaged.value.damage.next_offset == 3
    assert [decode_header(read(again, n, 1000)).base_offset for n in (0, 1, 3, 4)] == [0, 1, 3, 4]


@pytest.mark.parametrize("mood", list(Mood))
def test_a_power_cut_takes_only_what_was_not_acknowledged(mood: Mood) -> None:
    """Whatever the disk did with the rest."""
    for seed in range(40):
        disk = new_disk()
        disk.chance.seed(seed)
        log = opened(disk, SMALL)
        put(log, *(batch([b"a" * 200]) for _ in range(4)))
        acknowledged = read_all(log)
        for _ in range(3):
            stage(log, batch([b"b" * 200]))
        log.flush()
        disk.cut_power(mood)
        again = opened(disk, SMALL)
        found = read_all(again)
        assert found[:4] == acknowledged
        assert again.next_offset == len(found) == put(again, batch())[0]


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("mood", list(Mood))
def test_a_power_cut_before_the_first_sync_leaves_no_damage(mood: Mood, is_killed: bool) -> None:
    """Several groups and segments are written, none is acknowledged; also after kills."""
    for seed in range(100):
        disk = new_disk()
        disk.chance.seed(seed)
        for _ in range(4 if is_killed else 0):
            opened(disk, SMALL)
        log = opened(disk, SMALL)
        for _ in range(4):
            stage(log, batch([b"a" * 40]))
            log.flush()
            stage(log, batch([b"b" * 120]))
        log.flush()
        assert len(log.segments) > 1
        disk.cut_power(mood)
        assert [finding for finding in inspect_partition(disk, FOLDER) if finding.is_damage] == []
        again = opened(disk, SMALL)
        assert again.next_offset == len(read_all(again)) == put(again, batch())[0]


def test_without_a_witness_a_segment_behind_an_empty_one_is_kept() -> None:
    """It looks like a power cut before the first sync, but its records were acknowledged."""
    disk = new_disk()
    log = opened(disk, SMALL)
    put(log, *(batch([b"x" * 300]) for _ in range(2)))
    overwrite(disk, path(0, ".log"), b"")
    disk.remove(WITNESS)
    again = opened(disk, SMALL)
    with pytest.raises(DamagedError):
        read(again, 0, 1000)
    assert decode_header(read(again, 1, 1000)).base_offset == 1
    assert torn(disk) == []


def test_only_the_first_write_of_a_partition_waits_for_a_sync() -> None:
    """Later groups are written without one, also after a kill."""
    disk = new_disk()
    log = opened(disk)
    disk.faults.rates = {"sync": 1.0}
    stage(log, batch())
    with pytest.raises(StorageError):
        log.flush()
    assert log.stopped is not None
    disk.faults.calm_down()
    log = opened(disk)
    for _ in range(4):
        put(log, batch())
        disk.faults.rates = {"sync": 1.0, "sync_folder": 1.0}
        stage(log, batch())
        log.flush()
        disk.faults.calm_down()
        sync(log)
    log = opened(disk)
    disk.faults.rates = {"sync": 1.0, "sync_folder": 1.0}
    stage(log, batch())
    log.flush()
    assert log.next_offset == 9


def test_two_slots_of_a_witness_survive_a_torn_write() -> None:
    """The newer whole one counts."""
    old, new = DurablePoint(4, 10, 0, 700, 0), DurablePoint(5, 11, 0, 800, 0)
    file = bytearray(1024)
    file[0:44] = encode_durable_point(old)
    file[512:556] = encode_durable_point(new)
    assert decode_durable_point(bytes(file)) == new
    file[530] ^= 1
    assert decode_durable_point(bytes(file)) == old
    file[3] ^= 1
    assert decode_durable_point(bytes(file)) is None
    assert decode_durable_point(b"") is None


def test_every_byte_of_the_witness_flipped_loses_nothing() -> None:
    """It is never a reason to delete."""
    disk, log = three_batches()
    want = read_all(log)
    honest = bytes(bytes_of(disk, WITNESS))
    for position in [*range(48), *range(512, 560)]:
        spoiled = bytearray(honest)
        spoiled[position] ^= 0xFF
        overwrite(disk, WITNESS, bytes(spoiled))
        assert read_all(opened(disk)) == want


@pytest.mark.parametrize("size", [0, 1, 44, 100, 512, 600])
def test_a_witness_cut_short_loses_nothing(size: int) -> None:
    """Zero-byte files are accepted at start."""
    disk, log = three_batches()
    overwrite(disk, WITNESS, bytes(bytes_of(disk, WITNESS))[:size])
    again = opened(disk)
    assert read_all(again) == read_all(log)
    put(again, batch())
    assert offsets(opened(disk)) == [0, 1, 2, 3]


def test_a_failed_sync_while_opening_is_told_apart() -> None:
    """It must never be tried again in the same process."""
    disk, log = three_batches()
    stage(log, batch())
    log.flush()
    disk.faults.rates = {"sync": 1.0}
    with pytest.raises(SyncFailedError):
        opened(disk)


def test_whichever_disk_call_of_an_opening_fails_the_next_opening_finds_everything() -> None:
    """Break the first call, then the second, until an opening survives."""
    call = 0
    while True:
        call += 1
        disk = new_disk()
        log = opened(disk, SMALL)
        put(log, *(batch([b"x" * 200], producer=(1, 0, n)) for n in range(4)))
        want = read_all(log)
        stage(log, batch([b"y" * 90]))
        log.flush()
        file = disk.open(path(4, ".log")) if disk.exists(path(4, ".log")) else disk.open(log.active.path)
        file.truncate(file.size() - 5)
        disk.faults.fail_at = call
        try:
            opened(disk, SMALL)
            assert disk.faults.raised == 0 or call > 3
        except StorageError:
            assert disk.faults.raised == 1
        survived = disk.faults.raised == 0
        disk.faults.calm_down()
        again = opened(disk, SMALL)
        assert read_all(again) == want
        sync(again)
        if survived:
            assert call > 10
            return
