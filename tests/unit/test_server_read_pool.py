"""Old records are read by threads: what was asked for is in memory when the end is told."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import time
from pathlib import Path

import pytest

from penstock.queue.core.events import Load, Loaded, Part
from penstock.queue.server.disk import RealDisk, RealFile
from penstock.queue.server.read_pool import ReadPool

SIZE = 2 << 20


def quiet() -> bool:
    return False


def ended(pool: ReadPool) -> list[Loaded]:
    assert select.select([pool.wake_fd], [], [], 60)[0], "no load ends"
    return pool.collect()


def old_file(folder: Path) -> RealFile:
    """A file of which the kernel has forgotten everything, where it can."""
    file = RealDisk(str(folder)).create("old")
    file.write(0, [os.urandom(SIZE)])
    file.sync()
    with open(folder / "old", "rb") as other:
        os.posix_fadvise(other.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file


def cached_bytes(path: Path) -> int:
    """How much of a file is in memory, found out without reading any of it."""
    page = mmap.PAGESIZE
    pages = (ctypes.c_ubyte * (SIZE // page))()
    with path.open("r+b") as opened, mmap.mmap(opened.fileno(), SIZE, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        assert ctypes.CDLL(None).mincore(ctypes.byref(first), ctypes.c_size_t(SIZE), pages) == 0
        del first
    return sum(each & 1 for each in pages) * page


def test_what_was_loaded_is_at_hand(tmp_path: Path) -> None:
    """Whatever the kernel has forgotten of it before."""
    file = old_file(tmp_path)
    pool = ReadPool(quiet)
    pool.submit(Load(7, [Part(file, 0, SIZE)]))
    assert ended(pool) == [Loaded(7)]
    assert file.is_at_hand(0, SIZE)


def test_a_load_of_what_is_gone_ends(tmp_path: Path) -> None:
    """Retention may have removed a segment meanwhile; whoever reads then is told."""
    disk = RealDisk(str(tmp_path))
    file = disk.create("old")
    file.write(0, [bytes(SIZE)])
    disk.remove("old")
    pool = ReadPool(quiet)
    pool.submit(Load(8, [Part(file, 0, SIZE)]))
    assert ended(pool) == [Loaded(8)]


def test_what_was_just_written_is_at_hand(tmp_path: Path) -> None:
    """A live reader never waits for a thread."""
    file = RealDisk(str(tmp_path)).create("new")
    file.write(0, [bytes(SIZE)])
    assert file.is_at_hand(SIZE - 100_000, 100_000)


def test_a_look_and_a_read_bring_no_more_than_they_ask_for(tmp_path: Path) -> None:
    """Linux reads megabytes ahead by itself, and every sync waits behind that."""
    file = old_file(tmp_path)
    if cached_bytes(tmp_path / "old") > 0:
        pytest.skip("this file system forgets nothing")
    file.is_at_hand(0, SIZE)
    file.read(0, 64 * 1024)
    assert cached_bytes(tmp_path / "old") <= 128 * 1024


def test_a_load_gives_way_to_syncs_but_not_for_ever(tmp_path: Path) -> None:
    """It looks before each piece whether one is under way, waits a moment, and goes on."""
    looks = []

    def always() -> bool:
        looks.append(time.monotonic())
        return True

    pool = ReadPool(always)
    pool.submit(Load(9, [Part(old_file(tmp_path), 0, SIZE)]))
    assert ended(pool) == [Loaded(9)]
    assert len(looks) > SIZE // (256 * 1024)


def test_what_follows_is_brought_before_it_is_asked_for(tmp_path: Path) -> None:
    """Who catches up goes on there."""
    file = old_file(tmp_path)
    pool = ReadPool(quiet)
    pool.submit(Load(1, [Part(file, 0, SIZE // 2)]))
    assert ended(pool) == [Loaded(1)]
    deadline = time.monotonic() + 60
    while cached_bytes(tmp_path / "old") < SIZE:
        assert time.monotonic() < deadline
