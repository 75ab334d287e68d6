"""Files synced together: each as far as it needs, one flush for all, and nobody is told what is not known."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from penstock.config.broker import BrokerConfig
from penstock.queue.core.events import Sync
from penstock.queue.server import shared_flush
from penstock.queue.server import sync_pool as syncing
from penstock.queue.server.disk import RealDisk, RealFile
from penstock.queue.server.durable_extent import Extent
from penstock.queue.server.shared_flush import SharedFlush
from penstock.queue.server.sync_pool import SyncPool


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The handles whose sync flushed for all, on whatever file system the tests have."""
    found: list[int] = []

    def sync(handle: int) -> None:
        found.append(handle)
        os.fdatasync(handle)

    monkeypatch.setattr(shared_flush, "_sync_fd", sync)
    monkeypatch.setattr(shared_flush, "_refuse_other_ways", lambda *_: None)
    return found


def written(disk: RealDisk, name: str) -> RealFile:
    file = disk.create(name)
    file.write(0, (b"x" * 5000,))
    return file


@pytest.fixture
def handles(tmp_path: Path) -> list[int]:
    disk = RealDisk(str(tmp_path))
    return [written(disk, str(number)).open_handle for number in range(4)]


def test_one_flush_is_enough_for_all(tmp_path: Path, handles: list[int], synced: list[int]) -> None:
    assert SharedFlush(str(tmp_path)).run(handles) == dict.fromkeys(handles, 0)
    assert len(synced) == 1


def test_a_flush_that_fails_is_everybodys_failure_and_is_not_tried_again(
    tmp_path: Path, handles: list[int], synced: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def fail(handle: int) -> None:
        tried.append(handle)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(shared_flush, "_sync_fd", fail)

    assert SharedFlush(str(tmp_path)).run(handles) == dict.fromkeys(handles, errno.EIO)
    assert len(tried) == 1


def test_data_that_cannot_be_written_out_is_the_failure_of_its_file(
    tmp_path: Path, handles: list[int], synced: list[int]
) -> None:
    """Not of the others; and it is not synced once more."""
    read_end, write_end = os.pipe()  # Linux refuses to write out what is no file

    errors = SharedFlush(str(tmp_path)).run([*handles, write_end])

    assert errors == {**dict.fromkeys(handles, 0), write_end: errno.ESPIPE}
    assert synced == [handles[-1]]
    os.close(read_end)
    os.close(write_end)


def test_only_ext4_is_trusted() -> None:
    """Elsewhere bytes may never be written in place."""
    with pytest.raises(OSError, match="not ext4"):
        SharedFlush("/proc")


@pytest.mark.parametrize(
    ("options", "flags", "release", "reason"),
    [
        ("rw barrier data=journal", 0, "6.1.0-9-amd64", "in its journal"),
        ("rw barrier data=ordered", 0x4000, "6.1.0-9-amd64", "in its journal"),
        ("rw barrier data=ordered", 0, "4.19.0", "too old"),
        ("rw barrier data=ordered", 0, "6.1.0-9-amd64", None),
        ("rw barrier", 0, "5.2", None),
    ],
)
def test_ext4_is_trusted_only_with_data_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, flags: int, release: str, reason: str | None
) -> None:
    monkeypatch.setattr(shared_flush.Path, "resolve", lambda path, strict: path)
    monkeypatch.setattr(shared_flush.Path, "read_text", lambda _: options.replace(" ", "\n"))
    monkeypatch.setattr(shared_flush, "_flags", lambda _: flags)
    monkeypatch.setattr(shared_flush.platform, "release", lambda: release)
    if reason is None:
        SharedFlush(str(tmp_path))
    else:
        with pytest.raises(OSError, match=reason):
            SharedFlush(str(tmp_path))


def test_a_pool_flushes_once_for_partitions_that_write_into_their_zeros(tmp_path: Path, synced: list[int]) -> None:
    """What has grown is synced by itself, the next time it is data alone, and after a cut by itself again."""
    disk = RealDisk(str(tmp_path))
    pool = SyncPool(disk, BrokerConfig(sync_inline_us_max=10_000_000))
    files = [written(disk, str(number)) for number in range(3)]

    def run() -> int:
        synced.clear()
        ended = pool.run([Sync(number, [file], []) for number, file in enumerate(files)], 1)
        assert sorted((end.job, end.error) for end in ended) == [(0, None), (1, None), (2, None)]
        return len(synced)

    assert run() == 0
    for file in files:
        file.write(100, (b"y",))
    assert run() == 1
    for file in files:
        file.write(200, (b"y",))
    files[1].truncate(300)
    files[2].write(4999, (b"yy",))
    assert run() == 1
    assert [file.is_overwritten_on(os.stat(tmp_path).st_dev) for file in files] == [True, False, False]
    assert not files[0].is_overwritten_on(-1), "another disk has another cache"
    pool.stop()


def test_after_a_write_that_failed_nothing_is_taken_for_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group with its zeros does not fit, the group alone does: what is written into the rest later makes it grow."""
    file = RealDisk(str(tmp_path)).create("f")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", full)
        with pytest.raises(OSError, match="No space"):
            file.write(0, (b"x" * 100, b"\0" * 9900))
    file.write(0, (b"x" * 100,))
    file.begin_sync()
    file.run_sync()
    file.end_sync(is_durable=True)

    file.write(100, (b"y" * 100,))

    file.begin_sync()
    assert not file.is_overwritten_on(os.stat(tmp_path).st_dev)


def test_a_pool_that_may_not_share_says_why_and_syncs_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no such luck")

    monkeypatch.setattr(shared_flush, "_refuse_other_ways", refuse)
    disk = RealDisk(str(tmp_path))
    pool = syncing.SyncPool(disk, BrokerConfig(sync_inline_us_max=10_000_000))

    ended = pool.run([Sync(number, [written(disk, str(number))], []) for number in range(3)], 1)

    assert sorted((end.job, end.error) for end in ended) == [(0, None), (1, None), (2, None)]
    assert "no such luck" in capsys.readouterr().err
    pool.stop()


def synced_extent() -> Extent:
    """Of a file of 1,000 bytes that are durable."""
    extent = Extent(1, 0)
    extent.on_write(0, 1000)
    extent.begin_sync()
    extent.end_sync(is_durable=True)
    return extent


def is_overwritten(extent: Extent) -> bool:
    extent.begin_sync()
    return extent.is_overwritten


def test_bytes_over_what_is_durable_are_data() -> None:
    extent = synced_extent()
    extent.on_write(400, 1000)
    assert is_overwritten(extent)


def test_what_stood_there_when_the_file_was_opened_may_be_in_memory_only() -> None:
    extent = Extent(1, 1000)
    extent.on_write(400, 500)
    assert not is_overwritten(extent)


def test_bytes_behind_what_is_durable_are_more_than_data() -> None:
    extent = synced_extent()
    extent.on_write(400, 1001)
    assert not is_overwritten(extent)


def test_what_is_written_while_a_sync_runs_is_not_covered_by_it() -> None:
    extent = synced_extent()
    extent.on_write(1000, 2000)
    extent.begin_sync()
    extent.on_write(2000, 3000)
    extent.end_sync(is_durable=True)
    extent.on_write(1500, 1600)
    assert not is_overwritten(extent)
    extent.end_sync(is_durable=True)
    extent.on_write(2500, 2600)
    assert is_overwritten(extent)


def test_a_hole_is_never_trusted_again() -> None:
    """What fills it later needs blocks of its own."""
    extent = synced_extent()
    extent.on_write(5000, 6000)
    extent.begin_sync()
    extent.end_sync(is_durable=True)
    extent.on_write(2000, 3000)
    assert not is_overwritten(extent)


def test_after_a_failed_sync_nothing_is_trusted_again() -> None:
    extent = synced_extent()
    extent.on_write(400, 500)
    extent.begin_sync()
    extent.end_sync(is_durable=False)
    extent.on_write(400, 500)
    assert not is_overwritten(extent)
