"""Old records are read by threads: what was asked for is in memory when the end is told."""

from __future__ import annotations

import os
import select
from pathlib import Path

from penstock.broker.events import Load, Loaded, Part
from penstock.runtime.disk import RealDisk
from penstock.runtime.loading import LoadPool

SIZE = 2 << 20


def ended(pool: LoadPool) -> list[Loaded]:
    assert select.select([pool.wake_fd], [], [], 60)[0], "no load ends"
    return pool.collect()


def test_what_was_loaded_is_at_hand(tmp_path: Path) -> None:
    """Whatever the kernel has forgotten of it before."""
    file = RealDisk(str(tmp_path)).create("old")
    file.write(0, [os.urandom(SIZE)])
    file.sync()
    with open(tmp_path / "old", "rb") as other:
        os.posix_fadvise(other.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    pool = LoadPool()
    pool.submit(Load(7, [Part(file, 0, SIZE)]))
    assert ended(pool) == [Loaded(7)]
    assert file.is_at_hand(0, SIZE)


def test_a_load_of_what_is_gone_ends(tmp_path: Path) -> None:
    """Retention may have removed a segment meanwhile; whoever reads then is told."""
    disk = RealDisk(str(tmp_path))
    file = disk.create("old")
    file.write(0, [bytes(SIZE)])
    disk.remove("old")
    pool = LoadPool()
    pool.submit(Load(8, [Part(file, 0, SIZE)]))
    assert ended(pool) == [Loaded(8)]


def test_what_was_just_written_is_at_hand(tmp_path: Path) -> None:
    """A live reader never waits for a thread."""
    file = RealDisk(str(tmp_path)).create("new")
    file.write(0, [bytes(SIZE)])
    assert file.is_at_hand(SIZE - 100_000, 100_000)
