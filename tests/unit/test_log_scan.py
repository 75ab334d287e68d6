"""Walking a segment: few large reads for a long one, a small one for a short look, and all of it the same."""

from __future__ import annotations

import pytest
from stage.batches import batch
from stage.logs import new_disk

from penstock.kafka.records.batch import assign_offset
from penstock.ports import File
from penstock.queue.log.scan import PIECE_BYTES_MAX, WINDOW_BYTES, Damage, walk
from proof.sim.disk import FakeFile

LARGE = 100_000


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much each read of a file asked for."""
    asked: list[int] = []
    sound = FakeFile.read

    def read(self: FakeFile, position: int, length: int) -> bytes:
        asked.append(length)
        return sound(self, position, length)

    monkeypatch.setattr(FakeFile, "read", read)
    return asked


def segment(count: int, size: int) -> File:
    file = new_disk().create("segment")
    at = 0
    for number in range(count):
        one = bytearray(batch([bytes(size)]))
        assign_offset(one, number)
        file.write(at, (one,))
        at += len(one)
    return file


@pytest.mark.parametrize(("size", "verify"), [(LARGE, True), (LARGE, False), (6 * LARGE, True)])
def test_a_long_scan_asks_for_more_and_more_at_once(reads: list[int], size: int, verify: bool) -> None:
    """Nobody reads ahead for it: with small pieces the disk would wait for whoever asks."""
    count = 300 * LARGE // size
    file = segment(count, size)
    found = list(walk(file, 0, file.size(), 0, verify=verify))
    assert [piece.header.base_offset for piece in found if not isinstance(piece, Damage)] == list(range(count))
    assert (reads[0], max(reads)) == (WINDOW_BYTES, PIECE_BYTES_MAX)
    assert len(reads) <= 20


def test_a_short_look_reads_little(reads: list[int]) -> None:
    """Who wants one batch of a long segment does not wait for megabytes."""
    file = segment(300, LARGE)
    next(walk(file, 0, file.size(), 0, verify=True))
    assert reads == [WINDOW_BYTES]


def test_batches_that_are_passed_over_are_not_read(reads: list[int]) -> None:
    """Where only headers are looked at, and each stands far behind the last, pieces stay small."""
    file = segment(40, 2 * WINDOW_BYTES)
    assert len(list(walk(file, 0, file.size(), 0, verify=False))) == 40
    assert max(reads) == WINDOW_BYTES
