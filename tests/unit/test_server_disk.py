"""The real disk below a folder: handles given up and taken again, syncs that outlive a close."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from pathlib import Path

import pytest
from stage.nodes import Stage

from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.queue.core.events import Sync
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.disk import RealDisk, lock_folder
from penstock.queue.server.http_endpoints import answer
from penstock.queue.server.sync_pool import SyncPool


def open_handles(folder: Path) -> int:
    """Those to files of a test's own folder: the garbage of other tests is closed at any time."""
    found = 0
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the listing itself is closed again
            found += os.readlink(f"/proc/self/fd/{handle}").startswith(str(folder))
    return found


def test_files_hold_what_was_written(tmp_path: Path) -> None:
    """Chunks end to end, wherever they begin; reading beyond the end gives less."""
    disk = RealDisk(str(tmp_path))
    file = disk.create("f")
    file.write(0, (b"one", bytearray(b"two"), memoryview(b"three")))
    file.write(3, (b"TWO",))
    assert (file.size(), file.read(0, 99), file.read(3, 3), file.read(99, 5)) == (11, b"oneTWOthree", b"TWO", b"")
    file.truncate(6)
    file.sync()
    file.close()
    assert disk.open("f").read(0, 99) == b"oneTWO"
    assert disk.create("f").size() == 0


def test_more_chunks_than_one_call_takes_are_written(tmp_path: Path) -> None:
    """The kernel takes 1024 pieces at a time."""
    file = RealDisk(str(tmp_path)).create("f")
    file.write(2, [b"%05d" % n for n in range(3000)])
    assert file.read(2, 99_999) == b"".join(b"%05d" % n for n in range(3000))


def test_folders_and_names_are_as_the_port_says(tmp_path: Path) -> None:
    disk = RealDisk(str(tmp_path))
    disk.make_folder("a")
    disk.make_folder("a")
    for name in ("y", "x"):
        disk.create(f"a/{name}").close()
    assert disk.names("a") == ["x", "y"]
    disk.rename("a/x", "a/y")
    disk.sync_folder("a")
    assert disk.names("a") == ["y"]
    disk.remove("a/none")
    assert disk.exists("a/y")
    with pytest.raises(FileNotFoundError):
        disk.open("a/x")
    with pytest.raises(FileNotFoundError):
        disk.names("b")
    disk.remove_folder("a")
    disk.remove_folder("a")
    assert not disk.exists("a")


def test_handles_are_bounded_and_come_back_when_used(tmp_path: Path) -> None:
    """Ten thousand partitions do not need ten thousand handles."""
    disk = RealDisk(str(tmp_path), handles_max=16)
    before = open_handles(tmp_path)
    files = [disk.create(str(n)) for n in range(100)]
    for number, file in enumerate(files):
        file.write(0, (b"%d" % number,))
        file.sync()
    for _ in range(2):
        for number, file in enumerate(files):
            assert file.read(0, 9) == b"%d" % number
    assert open_handles(tmp_path) - before <= 32
    for file in files:
        file.close()
    assert open_handles(tmp_path) == before


def test_a_handle_with_unsynced_writes_is_not_given_up(tmp_path: Path) -> None:
    """An error of the kernel's writing back is told to handles that were open; a new one might not hear of it."""
    disk = RealDisk(str(tmp_path), handles_max=16)
    dirty = disk.create("dirty")
    dirty.write(0, (b"x",))
    for number in range(100):
        disk.create(str(number)).sync()
    assert not dirty.can_give_up
    dirty.sync()
    assert dirty.can_give_up


def test_a_close_during_a_sync_waits_for_its_end(tmp_path: Path) -> None:
    """A topic may be deleted while a thread syncs its file: the handle must not become another file's."""
    disk = RealDisk(str(tmp_path))
    before = open_handles(tmp_path)
    file = disk.create("f")
    file.write(0, (b"x",))
    file.begin_sync()
    file.close()
    assert open_handles(tmp_path) == before + 1
    file.run_sync()
    file.end_sync(is_durable=True)
    assert open_handles(tmp_path) == before


@pytest.mark.parametrize("in_kernel", [True, False])
@pytest.mark.parametrize("inline_us_max", [0, 10_000_000])
def test_syncs_end_each_with_its_own_result(tmp_path: Path, inline_us_max: int, in_kernel: bool) -> None:
    """At once, in threads or in the kernel; a folder that is not there is an error of its job alone."""
    disk = RealDisk(str(tmp_path))
    disk.make_folder("a")
    pool = SyncPool(disk, BrokerConfig(sync_inline_us_max=inline_us_max, sync_in_kernel=in_kernel))
    jobs = []
    for number in range(6):
        file = disk.create(f"a/{number}")
        file.write(0, (b"x",))
        jobs.append(Sync(number, [file], {4: ["gone"], 5: ["a"]}.get(number, [])))
    ended = [*pool.run(jobs[:3], 1), *pool.run(jobs[3:], 1)]
    while len(ended) < 6:
        assert select.select([pool.wake_fd], [], [], 20)[0]
        ended += pool.collect()
    pool.stop()
    assert sorted(synced.job for synced in ended) == list(range(6))
    assert [synced.job for synced in ended if synced.error] == [4]
    assert all(file.can_give_up for job in jobs for file in job.files)  # type: ignore[attr-defined]  # real files


def test_a_data_folder_belongs_to_one_broker(tmp_path: Path) -> None:
    """The second is told so before it touches anything; the lock ends with its owner."""
    folder = str(tmp_path / "data")
    lock = lock_folder(folder)
    with pytest.raises(ConfigError, match="another broker"):
        lock_folder(folder)
    os.close(lock)
    os.close(lock_folder(folder))


def test_the_clock_only_goes_forward() -> None:
    clock = SteadyClock()
    times = [clock.now_ms() for _ in range(1000)]
    assert times == sorted(times)


def ask(request: bytes, stopped: str | None = None) -> tuple[int, bytes]:
    stage = Stage()
    stage.topic()
    if stopped is not None:
        stage.node.meta.partition.log.stop(stopped)
    head, _, body = answer(stage.node, request).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert b"Content-Length: %d" % len(body) in lines
    return int(lines[0].split()[1]), body


def test_operators_are_answered_over_http() -> None:
    """Health, readiness and metrics; anything else is told what there is."""
    assert ask(b"GET /health HTTP/1.1\r\n\r\n")[0] == 200
    assert ask(b"GET /ready?x=1 HTTP/1.0\r\n\r\n")[0] == 200
    status, metrics = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status == 200
    assert b"\npenstock_broker_topics 1\n" in metrics
    assert b'penstock_broker_requests_total{api="CreateTopics"} 1' in metrics
    assert ask(b"GET /secret HTTP/1.1\r\n\r\n")[0] == 404
    assert ask(b"POST /health HTTP/1.1\r\n\r\n")[0] == 405
    for junk in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01", b"GET / FTP\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n"):
        assert ask(junk)[0] == 400


def test_health_is_red_while_a_partition_is_stopped() -> None:
    status, body = ask(b"GET /health HTTP/1.1\r\n\r\n", "a sync failed")
    assert status == 503
    assert b"a sync failed" in body
