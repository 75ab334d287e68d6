"""Syncs that Linux runs by itself: each ends once, with its own result, and who is not waiting is told."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.config.broker import BrokerConfig
from penstock.queue.core.events import Sync
from penstock.queue.server.disk import RealDisk, RealFile
from penstock.queue.server.kernel_sync import KernelSyncs
from penstock.queue.server.sync_pool import KERNEL_FILES, Pace, SyncPool

WITHIN_S = 60.0


@pytest.fixture
def wake_fd() -> Iterator[int]:
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    yield fd
    os.close(fd)


def is_told(fd: int, within_s: float) -> bool:
    return bool(select.select([fd], [], [], within_s)[0])


def written(disk: RealDisk, name: str) -> RealFile:
    file = disk.create(name)
    file.write(0, (b"x" * 5000,))
    return file


def test_each_ends_once_under_its_ticket(tmp_path: Path, wake_fd: int) -> None:
    """More at a time than there is room for are not taken, and there is room again after an end."""
    disk = RealDisk(str(tmp_path))
    wanted = [(100 + number, written(disk, str(number)).open_handle) for number in range(6)]
    kernel = KernelSyncs(4, wake_fd)

    assert kernel.submit(wanted, is_told=True) == 4
    assert kernel.submit(wanted[4:], is_told=True) == 0
    assert is_told(wake_fd, WITHIN_S)
    assert sorted(kernel.ended(at_least=4)) == [(100, 0), (101, 0), (102, 0), (103, 0)]
    assert kernel.submit(wanted[4:], is_told=True) == 2
    assert sorted(kernel.ended(at_least=2)) == [(104, 0), (105, 0)]
    assert kernel.ended(at_least=0) == []
    assert kernel.room == 4


def test_nobody_is_told_of_what_somebody_waits_for(tmp_path: Path, wake_fd: int) -> None:
    """A loop that has waited is not woken again for the same end."""
    kernel = KernelSyncs(4, wake_fd)
    assert kernel.submit([(1, written(RealDisk(str(tmp_path)), "f").open_handle)], is_told=False) == 1
    assert kernel.ended(at_least=1) == [(1, 0)]
    assert not is_told(wake_fd, 0)


@pytest.mark.parametrize("inline_us_max", [0, 10_000_000])
def test_what_the_kernel_does_not_take_fails_its_own_job(tmp_path: Path, inline_us_max: int) -> None:
    """A handle that cannot be synced is no reason to lose, or to hold up, the others of the same step."""
    disk = RealDisk(str(tmp_path))
    reader, writer = os.pipe()
    files = [written(disk, str(number)) for number in range(4)]
    os.dup2(writer, files[2].open_handle)
    pool = SyncPool(disk, BrokerConfig(sync_inline_us_max=inline_us_max, sync_shares_flush=False))

    ended = pool.run([Sync(number, [file], []) for number, file in enumerate(files)], 1)
    while len(ended) < 4:
        assert is_told(pool.wake_fd, WITHIN_S)
        ended += pool.collect()

    assert sorted(synced.job for synced in ended) == [0, 1, 2, 3]
    assert [(synced.job, synced.error) for synced in ended if synced.error] == [(2, "[Errno 22] Invalid argument")]
    os.close(reader)
    os.close(writer)


def test_more_than_the_kernel_takes_at_once_all_end_once(tmp_path: Path) -> None:
    """Threads take the rest, and whatever is more than one written file."""
    disk = RealDisk(str(tmp_path))
    pool = SyncPool(disk, BrokerConfig(sync_inline_us_max=0))
    jobs = [Sync(number, [written(disk, str(number))], []) for number in range(KERNEL_FILES + 20)]
    jobs.append(Sync(len(jobs), [written(disk, "one"), written(disk, "two")], []))
    jobs.append(Sync(len(jobs), [written(disk, "three")], [""]))
    jobs.append(Sync(len(jobs), [], [""]))

    ended = pool.run(jobs, 1)
    while len(ended) < len(jobs):
        assert is_told(pool.wake_fd, WITHIN_S)
        ended += pool.collect()
    pool.stop()

    assert sorted(synced.job for synced in ended) == list(range(len(jobs)))
    assert [synced.error for synced in ended if synced.error] == []
    assert all(file.can_give_up for job in jobs for file in job.files)  # type: ignore[attr-defined]  # real files


def test_a_file_that_cannot_be_opened_again_fails_its_own_job(tmp_path: Path) -> None:
    """Its handle was given up while nothing unsynced was in it."""
    disk = RealDisk(str(tmp_path))
    files = [written(disk, str(number)) for number in range(3)]
    files[1].sync()
    files[1].give_up()
    disk.remove("1")
    pool = SyncPool(disk, BrokerConfig())

    ended = pool.run([Sync(number, [file], []) for number, file in enumerate(files)], 1)
    while len(ended) < 3:
        assert is_told(pool.wake_fd, WITHIN_S)
        ended += pool.collect()

    assert {synced.job: synced.error is None for synced in ended} == {0: True, 1: False, 2: True}


def test_where_the_kernel_has_no_syncs_threads_run_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old kernel takes none of them, a sandbox forbids the call: nothing but speed is lost."""
    disk = RealDisk(str(tmp_path))
    monkeypatch.setattr(KernelSyncs, "submit", lambda *_, **__: 0)
    pool = SyncPool(disk, BrokerConfig(sync_inline_us_max=0))
    ended = pool.run([Sync(number, [written(disk, str(number))], []) for number in range(3)], 1)
    while len(ended) < 3:
        assert is_told(pool.wake_fd, WITHIN_S)
        ended += pool.collect()
    pool.stop()
    assert [synced.error for synced in ended] == [None] * 3


def test_a_loop_that_looks_late_does_not_take_the_disk_for_slow() -> None:
    """What it finds ended has taken at most so long; what it waited for has taken it."""
    pace = Pace(2_000_000)
    pace.took(300_000)
    pace.took_at_most(50_000_000)
    assert pace.is_quick
    pace.took(50_000_000)
    assert not pace.is_quick
    for _ in range(200):
        pace.took_at_most(100_000)
    assert pace.is_quick


def test_a_failed_sync_is_told_as_failed(wake_fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Linux writes it: the error, below zero, in the third number of its event; a signal in between is no error."""
    kernel = KernelSyncs(4, wake_fd)
    calls = []

    def getevents(*_: object) -> int:
        calls.append(_)
        if len(calls) == 1:
            ctypes.set_errno(errno.EINTR)
            return -1
        struct.pack_into("<QQqq", kernel._events.view, 0, 7, 0, -errno.EIO, 0)
        struct.pack_into("<QQqq", kernel._events.view, 32, 8, 0, 0, 0)
        return 2

    monkeypatch.setattr(kernel, "_io_getevents", getevents)
    assert kernel.ended(at_least=2) == [(7, errno.EIO), (8, 0)]
    assert len(calls) == 2
