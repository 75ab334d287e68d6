"""A damaged byte is never served, costs nothing but its own batch, and is found by inspection."""

from __future__ import annotations

import pytest
from stage.batches import NOW_MS, batch
from stage.logs import FOLDER, bytes_of, cut, new_disk, opened, overwrite, path, put, read_all, stage, sync

from penstock.config.topic import TopicConfig
from penstock.kafka.records.batch import decode_header
from penstock.queue.log.inspection import Kind, inspect_partition
from penstock.queue.log.log import Log
from penstock.queue.log.producers import Sent
from penstock.queue.log.reading import DamagedError, read
from penstock.queue.log.retention import plan_start, should_roll
from proof.sim.disk import FakeDisk
from proof.sim.inode import Mood

COUNTS = (1, 3, 2, 1)
STARTS = (0, 1, 4, 6)
END = 7


def written(close: bool) -> tuple[FakeDisk, list[bytes]]:
    """Four batches of several records, acknowledged; stopped cleanly, or killed."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([b"value %d" % n] * count) for n, count in enumerate(COUNTS)))
    found = read_all(log)
    if close:
        log.close()
    return disk, found


def readable(log: Log, bytes_max: int) -> dict[int, bytes]:
    """The first batch that a reader gets from every offset."""
    found = {}
    for offset in range(END):
        try:
            (first, *_) = cut(read(log, offset, bytes_max))
        except DamagedError as error:
            following = error.damage.next_offset
            assert following is None or following > offset
        else:
            found[offset] = first
    return found


@pytest.mark.parametrize("close", [True, False], ids=["stopped", "killed"])
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_whichever_byte_of_a_segment_is_flipped_only_its_batch_is_lost(close: bool, mask: int) -> None:
    """The rest is served as it was, nothing is cut, and new records get offsets of their own."""
    disk, batches = written(close)
    images = {name: bytes(bytes_of(disk, f"{FOLDER}/{name}")) for name in disk.names(FOLDER)}
    honest = images[f"{0:020d}.log"]
    owner = [number for number, found in enumerate(batches) for _ in found]
    for position in range(len(honest)):
        spoiled = bytearray(honest)
        spoiled[position] ^= mask
        for name in disk.names(FOLDER):
            disk.remove(f"{FOLDER}/{name}")
        for name, image in images.items():
            overwrite(disk, f"{FOLDER}/{name}", image)
        overwrite(disk, path(0, ".log"), bytes(spoiled))
        log = opened(disk)
        hit = owner[position]
        want = {
            offset: batches[number]
            for number, (start, count) in enumerate(zip(STARTS, COUNTS, strict=True))
            for offset in range(start, start + count)
            if number != hit
        }
        assert readable(log, 61) == readable(log, 1 << 20) == want, position
        assert bytes(bytes_of(disk, path(0, ".log"))) == bytes(spoiled), position
        kinds = [finding.kind for finding in inspect_partition(disk, FOLDER)]
        assert Kind.DAMAGED in kinds or Kind.MISSING in kinds, position
        (offset,) = put(log, batch([b"new"]))
        assert offset >= END
        assert decode_header(read(log, offset, 1000)).base_offset == offset


@pytest.mark.parametrize("ending", [".index", ".producers"])
@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_an_index_or_snapshot_that_is_damaged_is_made_again(ending: str, mask: int) -> None:
    """The log alone is believed, and nothing is deleted for the sake of a side file."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([b"x" * 40], producer=(3, 0, n)) for n in range(6)))
    log.close()
    want, known = read_all(log), log.producers.known[3].batches
    (name,) = [name for name in disk.names(FOLDER) if name.endswith(ending)]
    honest = bytes(bytes_of(disk, f"{FOLDER}/{name}"))
    for position in range(len(honest)):
        spoiled = bytearray(honest)
        spoiled[position] ^= mask
        overwrite(disk, f"{FOLDER}/{name}", bytes(spoiled))
        again = opened(disk)
        assert read_all(again) == want
        assert again.producers.known[3].batches == known
    for size in (0, 3, len(honest) - 1):
        overwrite(disk, f"{FOLDER}/{name}", honest[:size])
        assert read_all(opened(disk)) == want
    disk.remove(f"{FOLDER}/{name}")
    again = opened(disk)
    assert (read_all(again), again.producers.known[3].batches) == (want, known)


def test_a_snapshot_of_a_tail_that_is_gone_is_never_believed_again() -> None:
    """A power cut takes a tail but not its snapshot; the log grows past it with other producers."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"kept"]))
    whole = bytes(bytes_of(disk, path(0, ".log")))
    put(log, *(batch([b"gone"], producer=(7, 0, n)) for n in range(3)))
    log.save_checkpoint()
    overwrite(disk, path(0, ".log"), whole)
    disk.remove(f"{FOLDER}/durable")
    log = opened(disk)
    assert log.next_offset == 1
    put(log, *(batch([b"other"], producer=(8, 0, n)) for n in range(5)))
    assert list(opened(disk).producers.known) == [8]


def test_an_index_of_a_tail_that_is_gone_is_never_believed_again() -> None:
    """Its positions would point into the middle of other batches."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"kept"]))
    whole = bytes(bytes_of(disk, path(0, ".log")))
    put(log, batch([b"gone" * 40_000]), batch([b"gone" * 100]))
    log.save_checkpoint()
    overwrite(disk, path(0, ".log"), whole)
    disk.remove(f"{FOLDER}/durable")
    log = opened(disk)
    put(log, *(batch([b"other" * 9_000]) for _ in range(6)))
    want = read_all(log)
    again = opened(disk)
    assert (again.next_offset, again.segments[0].damages) == (7, [])
    assert read_all(again) == want


def test_a_flipped_length_hides_nothing_behind_it() -> None:
    """A reader that skips to an offset must not be led astray by a batch it did not check."""
    disk = new_disk()
    put(opened(disk), *(batch([b"v" * 20]) for _ in range(12)))
    size = len(batch([b"v" * 20]))
    for add in (1, size, 2 * size, 3 * size + 7):
        data = bytes_of(disk, path(0, ".log"))
        length = int.from_bytes(data[3 * size + 8 : 3 * size + 12], "big")
        spoiled = bytes(data[: 3 * size + 8]) + (length + add).to_bytes(4, "big") + bytes(data[3 * size + 12 :])
        honest = bytes(data)
        overwrite(disk, path(0, ".log"), spoiled)
        log = opened(disk)
        for offset in (0, 1, 2, 4, 5, 6, 7, 11):
            assert decode_header(read(log, offset, 1 << 20)).base_offset == offset
        with pytest.raises(DamagedError):
            read(log, 3, 100)
        overwrite(disk, path(0, ".log"), honest)


def test_an_offset_that_lies_behind_damage_is_not_believed() -> None:
    """No checksum covers it, and what stood before it is gone: those behind it tell."""
    disk, batches = written(close=True)
    image = bytearray(bytes_of(disk, path(0, ".log")))
    image[len(batches[0]) - 1] ^= 0xFF  # the first batch is damaged, and the second claims to stand far away
    image[len(batches[0]) + 3] ^= 0x08
    overwrite(disk, path(0, ".log"), bytes(image))
    found = readable(opened(disk), 1 << 20)
    assert [decode_header(found[offset]).base_offset for offset in sorted(found)] == [4, 4, 6]


def test_an_offset_that_lies_between_damages_is_not_believed() -> None:
    """Neither neighbour confirms it, so the next whole batch does."""
    disk, batches = written(close=True)
    image = bytearray(bytes_of(disk, path(0, ".log")))
    first, second, third = (len(one) for one in batches[:3])
    image[first - 1] ^= 0xFF
    image[first + 3] ^= 0x08
    image[first + second + third - 1] ^= 0xFF
    overwrite(disk, path(0, ".log"), bytes(image))
    found = readable(opened(disk), 1 << 20)
    assert decode_header(batches[3]).base_offset in found


@pytest.mark.parametrize("byte", [3, 14])  # of its offset, of its epoch: no checksum covers them
def test_a_repeat_of_a_batch_that_lies_about_its_place_is_known(byte: int) -> None:
    """It is not served any more, but what it says of its producer is true."""
    disk = new_disk()
    log = opened(disk)
    put(log, batch([b"a"], producer=(7, 0, 0)), batch([b"b"], producer=(8, 0, 0)))
    bytes_of(disk, path(0, ".log"))[byte] ^= 0x40
    assert opened(disk).producers.check(7, 0, 0, 1) == Sent(0, 0, 0, 1)


def test_two_flipped_segments_of_many_leave_the_others() -> None:
    """Damage stays in its segment."""
    config = TopicConfig(segment_bytes=400)
    disk = new_disk()
    put(opened(disk, config), *(batch([b"x" * 250]) for _ in range(6)))
    disk.inode(path(1, ".log")).flip(70, 0)
    disk.inode(path(4, ".log")).flip(0, 7)
    log = opened(disk, config)
    for offset in (0, 2, 3, 5):
        assert decode_header(read(log, offset, 100)).base_offset == offset
    for offset in (1, 4):
        with pytest.raises(DamagedError) as error:
            read(log, offset, 100)
        assert error.value.damage.next_offset == offset + 1


def test_damage_is_no_reason_for_retention_to_delete() -> None:
    """A segment without a readable time says nothing of its age."""
    config = TopicConfig(segment_bytes=400, retention_ms=1000)
    disk = new_disk()
    put(opened(disk, config), *(batch([b"x" * 250]) for _ in range(3)))
    overwrite(disk, path(0, ".log"), b"\xff" * 300)
    log = opened(disk, config)
    assert plan_start(log, NOW_MS) == 0
    assert plan_start(log, NOW_MS + 2000) == 2


def test_records_without_a_time_are_kept_until_the_next_ones_expire() -> None:
    """Clients may send -1; that is no age of fifty years."""
    config = TopicConfig(segment_bytes=400, retention_ms=1000)
    log = opened(new_disk(), config)
    put(log, batch([b"x" * 250], stamps=[-1]), batch([b"y" * 250], stamps=[-1]))
    assert plan_start(log, NOW_MS) == 0
    assert not should_roll(log, NOW_MS)


@pytest.mark.parametrize("mood", list(Mood))
@pytest.mark.parametrize("starts", [1, 2])
def test_a_power_cut_right_after_the_first_records_leaves_no_damage(mood: Mood, starts: int) -> None:
    """Even before any durable point was synced on its own, a torn tail is told from damage."""
    config = TopicConfig(segment_bytes=500)
    for seed in range(30):
        disk = new_disk()
        disk.chance.seed(seed)
        for _ in range(starts):  # all but the last were killed
            log = opened(disk, config)
        put(log, batch([b"a" * 200]))
        for _ in range(6):
            stage(log, batch([b"b" * 200]))
        log.flush()
        disk.cut_power(mood)
        again = opened(disk, config)
        assert len(read_all(again)) == again.next_offset >= 1
        sync(again)
