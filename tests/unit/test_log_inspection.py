"""What doctor says of a partition: every damage by file and offset, and nothing worse than it is."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.kafka.records.batch import assign_offset
from penstock.kafka.records.record import encode_values
from penstock.ports import Buffer
from penstock.queue.log.durable_point import DurablePoint, encode_durable_point
from penstock.queue.log.index import SparseIndex, encode_index
from penstock.queue.log.inspection import Finding, Kind, inspect_partition
from penstock.queue.log.producer_snapshot import encode_snapshot
from penstock.queue.log.producers import ProducerTable
from penstock.queue.log.recovery import open_log

FOLDER = "p"
BATCHES, RECORDS = 9, 2


class MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self.disk = disk
        self.path = path

    @property
    def data(self) -> bytearray:
        return self.disk.files[self.path]

    def size(self) -> int:
        return len(self.data)

    def read(self, position: int, length: int) -> bytes:
        if self.path == self.disk.broken:
            raise OSError(errno.EIO, "Input/output error")
        return bytes(self.data[position : position + length])

    def write(self, position: int, chunks: Sequence[Buffer]) -> None:
        self.disk.change()
        written = b"".join(chunks)
        self.data.extend(bytes(max(0, position - len(self.data))))
        self.data[position : position + len(written)] = written

    def is_at_hand(self, position: int, length: int) -> bool:
        return True

    def truncate(self, size: int) -> None:
        self.disk.change()
        del self.data[size:]

    def sync(self) -> None:
        self.disk.change()

    def close(self) -> None:
        pass


class MemoryDisk:
    """Files in memory; once frozen, whatever changes one fails the test."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.frozen = False
        self.broken: str | None = None

    def change(self) -> None:
        assert not self.frozen, "an inspection changed the disk"

    def open(self, path: str) -> MemoryFile:
        if path not in self.files:
            raise FileNotFoundError(path)
        return MemoryFile(self, path)

    def create(self, path: str) -> MemoryFile:
        self.change()
        self.files[path] = bytearray()
        return MemoryFile(self, path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def names(self, folder: str) -> list[str]:
        return sorted(path.removeprefix(f"{folder}/") for path in self.files if path.startswith(f"{folder}/"))

    def remove(self, path: str) -> None:
        self.change()
        self.files.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        self.change()
        self.files[new] = self.files.pop(old)

    def remove_folder(self, path: str) -> None:
        self.change()

    def make_folder(self, path: str) -> None:
        self.change()

    def sync_folder(self, path: str) -> None:
        self.change()


def batch(base_offset: int) -> bytearray:
    made = encode_values([f"record {base_offset + number:04}".encode() for number in range(RECORDS)], 1)
    assign_offset(made, base_offset)
    return made


def written(disk: MemoryDisk, batches: int = BATCHES, a_segment: int = BATCHES) -> None:
    """A partition after a clean end: segments with their indexes, a snapshot of producers, the witness."""
    for first in range(0, batches, a_segment):
        bases = [number * RECORDS for number in range(first, min(first + a_segment, batches))]
        log = bytearray(b"".join(batch(base) for base in bases))
        index = SparseIndex(bases[0])
        index.covered, index.next_offset = len(log), bases[-1] + RECORDS
        disk.files[f"{FOLDER}/{bases[0]:020}.log"] = log
        disk.files[f"{FOLDER}/{bases[0]:020}.index"] = bytearray(encode_index(index))
    end = batches * RECORDS
    disk.files[f"{FOLDER}/{end:020}.producers"] = bytearray(encode_snapshot(ProducerTable(9), end))
    disk.files[f"{FOLDER}/durable"] = bytearray(encode_durable_point(DurablePoint(2, end, bases[0], len(log), 0)))


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


def inspected(disk: MemoryDisk) -> list[Finding]:
    disk.frozen = True
    return inspect_partition(disk, FOLDER)


def segments(disk: MemoryDisk) -> list[str]:
    return [path for path in sorted(disk.files) if path.endswith(".log")]


def test_nothing_is_said_of_a_whole_partition(disk: MemoryDisk) -> None:
    """Over several segments, with all that belongs to them."""
    written(disk, a_segment=3)
    assert len(segments(disk)) == 3
    assert inspected(disk) == []


def test_every_flipped_byte_is_named_with_file_and_offset(disk: MemoryDisk) -> None:
    """A damaged batch is found wherever it is hit; what stands before and behind it is not blamed."""
    written(disk, batches=3)
    (path,) = segments(disk)
    whole = bytes(disk.files[path])
    size = len(whole) // 3
    for position in range(len(whole)):
        disk.files[path][position] ^= 0x55
        (found,) = inspected(disk)
        hit = position // size
        assert found.kind is Kind.DAMAGED, position
        assert (found.file, found.position, found.end) == (path, hit * size, (hit + 1) * size), position
        assert (found.offset, found.next_offset) == (hit * RECORDS, (hit + 1) * RECORDS), position
        disk.files[path][:] = whole


def test_a_bad_tail_behind_the_durable_point_is_no_damage(disk: MemoryDisk) -> None:
    """Nobody was told that those bytes are kept."""
    written(disk)
    (path,) = segments(disk)
    end = len(disk.files[path])
    disk.files[path] += b"torn"
    (found,) = inspected(disk)
    assert (found.kind, found.position, found.end) == (Kind.UNSYNCED, end, end + 4)
    assert not found.is_damage


def test_whole_batches_behind_the_durable_point_are_told_apart(disk: MemoryDisk) -> None:
    """They will be kept by the next start, so nothing is damaged."""
    written(disk)
    (path,) = segments(disk)
    disk.files[path] += batch(BATCHES * RECORDS)
    (found,) = inspected(disk)
    assert (found.kind, found.offset, found.next_offset) == (
        Kind.UNSYNCED, BATCHES * RECORDS, (BATCHES + 1) * RECORDS,
    )  # fmt: skip


def test_a_missing_segment_is_named_by_its_offsets(disk: MemoryDisk) -> None:
    """The hole has a beginning and an end."""
    written(disk, a_segment=3)
    gone = segments(disk)[1]
    following = segments(disk)[2]
    del disk.files[gone]
    (found,) = inspected(disk)
    first, behind = (int(path.removesuffix(".log")[-20:]) for path in (gone, following))
    assert (found.kind, found.file, found.offset, found.next_offset) == (Kind.MISSING, following, first, behind)
    assert found.is_damage


def test_missing_log_files_are_damage(disk: MemoryDisk) -> None:
    """The witness remembers that records were acknowledged."""
    written(disk)
    for path in segments(disk):
        del disk.files[path]
    (found,) = inspected(disk)
    assert (found.kind, found.next_offset) == (Kind.MISSING, BATCHES * RECORDS)
    assert "neither reads nor writes this partition" in found.advice


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_log_cut_between_batches_is_damage(disk: MemoryDisk, left: int) -> None:
    """A file that was truncated where a batch ends looks whole by itself."""
    written(disk, batches=3)
    (path,) = segments(disk)
    del disk.files[path][left * len(disk.files[path]) // 3 :]
    (found,) = (found for found in inspected(disk) if found.is_damage)
    assert (found.kind, found.offset, found.next_offset) == (Kind.MISSING, left * RECORDS, 3 * RECORDS)


def test_a_log_cut_inside_a_batch_is_not_damage_only_if_nobody_knew_better(disk: MemoryDisk) -> None:
    """With the witness it is damage; without it, it may be a tail that was never acknowledged."""
    written(disk, batches=3)
    (path,) = segments(disk)
    del disk.files[path][-5:]
    assert any(found.is_damage for found in inspected(disk))
    del disk.files[f"{FOLDER}/durable"]
    assert Kind.UNSYNCED in [found.kind for found in inspected(disk)]
    assert not any(found.is_damage for found in inspected(disk))


@pytest.mark.parametrize("ending", [".index", ".producers", "durable"])
def test_a_damaged_companion_is_harmless(disk: MemoryDisk, ending: str) -> None:
    """Index, snapshot and witness are made again: each flipped byte of them is told, none is damage."""
    written(disk)
    (path, *_) = (path for path in disk.files if path.endswith(ending))
    disk.files[path][:] = bytes(byte ^ 0xFF for byte in disk.files[path])
    (found,) = inspected(disk)
    assert (found.kind, found.file, found.is_damage) == (Kind.REBUILT, path, False)


def test_an_index_of_another_log_is_noticed(disk: MemoryDisk) -> None:
    """It is whole, but covers more than there is."""
    written(disk)
    (path,) = segments(disk)
    del disk.files[f"{FOLDER}/durable"]
    del disk.files[path][len(disk.files[path]) // 3 :]
    assert [found.kind for found in inspected(disk)] == [Kind.REBUILT]


def test_what_a_start_kept_aside_is_mentioned(disk: MemoryDisk) -> None:
    """Bytes once cut off are not forgotten."""
    written(disk)
    (path,) = segments(disk)
    disk.files[path] += b"torn"
    open_log(disk, FOLDER, TopicConfig(), BrokerConfig(), 0).close()
    (found,) = inspected(disk)
    assert found.kind is Kind.KEPT_ASIDE
    assert found.what.startswith("4 bytes")


def test_a_file_that_the_disk_does_not_give_is_named(disk: MemoryDisk) -> None:
    """An I/O error is a finding, not the end of the inspection."""
    written(disk, a_segment=3)
    disk.broken = segments(disk)[1]
    kinds = {found.file: found.kind for found in inspected(disk)}
    assert kinds[disk.broken] is Kind.UNREADABLE
