"""Every byte of a stored partition, flipped: never served, never a reason to lose what stands beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.kafka.records.batch import decode_header
from penstock.queue.log.inspection import Kind, inspect_partition
from penstock.queue.log.log import Log
from penstock.queue.log.reading import DamagedError, read
from penstock.queue.log.recovery import open_log
from penstock.queue.server.disk import RealDisk
from proof.abuse.malformed_frames import a_batch

BATCHES = 5
NOW_MS = 1_800_000_000_000
SEGMENT = "0" * 20 + ".log"


class Stored(NamedTuple):
    """A partition on disk, and its batches as they were written, with where each begins."""

    root: Path
    batches: list[bytes]
    begins: list[int]

    @property
    def size(self) -> int:
        return self.begins[-1] + len(self.batches[-1])

    def batch_at(self, position: int) -> int:
        return max(n for n, begin in enumerate(self.begins) if begin <= position)


@pytest.fixture(params=["stopped", "killed"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    """Five acknowledged batches, left behind by a clean stop or by a kill."""
    root = tmp_path / "stored"
    (root / "p").mkdir(parents=True)
    log = _open(root)
    for number in range(BATCHES):
        batch = bytearray(a_batch(f"value {number}".encode()))
        header = decode_header(batch)
        log.append(batch, header.last_delta, header.max_timestamp, NOW_MS)
        log.flush()
        targets = log.begin_sync()
        for file in targets.files:
            file.sync()
        log.end_sync()
    if request.param == "stopped":
        log.close()
    whole = (root / "p" / SEGMENT).read_bytes()
    size = len(whole) // BATCHES
    begins = [size * number for number in range(BATCHES)]
    return Stored(root, [whole[begin : begin + size] for begin in begins], begins)


def _open(root: Path) -> Log:
    return open_log(RealDisk(str(root)), "p", TopicConfig(), BrokerConfig(), NOW_MS)


def _spoiled(stored: Stored, name: str) -> Iterator[tuple[int, Path]]:
    """Copies of the partition, each with another byte of one file flipped; a copy is gone when the next comes."""
    original = (stored.root / "p" / name).read_bytes()
    for position in range(len(original)):
        copy = stored.root.parent / "copy"
        shutil.copytree(stored.root, copy)
        data = bytearray(original)
        data[position] ^= 1 << position % 8
        (copy / "p" / name).write_bytes(data)
        yield position, copy
        shutil.rmtree(copy)


def _served(log: Log) -> list[bytes | None]:
    """The first batch of a read at each offset; None where it is damaged."""
    found: list[bytes | None] = []
    for offset in range(BATCHES):
        try:
            found.append(bytes(read(log, offset, 1)))
        except DamagedError:
            found.append(None)
    return found


@pytest.mark.timeout(200)
def test_a_flipped_byte_is_never_served_and_costs_one_batch(stored: Stored) -> None:
    """Whichever byte it is: its batch is refused and named, the others are served, and the file keeps its length."""
    for position, copy in _spoiled(stored, SEGMENT):
        spoiled = stored.batch_at(position)
        findings = inspect_partition(RealDisk(str(copy)), "p")
        damaged = [(f.kind, f.file, f.position, f.offset) for f in findings if f.is_damage]
        assert damaged == [(Kind.DAMAGED, f"p/{SEGMENT}", stored.begins[spoiled], spoiled)], f"byte {position}"

        log = _open(copy)

        expected = [None if n == spoiled else batch for n, batch in enumerate(stored.batches)]
        assert _served(log) == expected, f"byte {position}"
        assert log.next_offset == BATCHES, f"byte {position}"
        assert (copy / "p" / SEGMENT).stat().st_size == stored.size, f"byte {position}"
        assert log.torn == [], f"byte {position}"
        log.discard()


@pytest.mark.timeout(200)
def test_flipped_or_missing_side_files_change_nothing(stored: Stored) -> None:
    """Index, snapshot and witness: any byte flipped, or the file gone or empty, and all batches are served."""
    names = [path.name for path in (stored.root / "p").iterdir() if path.name not in (SEGMENT, "spare")]
    assert "durable" in names
    for name in names:
        for position, copy in _spoiled(stored, name):
            _expect_all(stored, copy, f"{name}, byte {position}")
        for change in ("gone", "empty"):
            copy = stored.root.parent / "copy"
            shutil.copytree(stored.root, copy)
            path = copy / "p" / name
            path.unlink() if change == "gone" else path.write_bytes(b"")
            _expect_all(stored, copy, f"{name} {change}")
            shutil.rmtree(copy)


def _expect_all(stored: Stored, root: Path, what: str) -> None:
    log = _open(root)
    assert _served(log) == stored.batches, what
    assert log.next_offset == BATCHES, what
    assert log.torn == [], what
    assert not any(finding.is_damage for finding in inspect_partition(RealDisk(str(root)), "p")), what
    log.discard()
