"""Syncs in threads, so that a slow disk stalls nobody but those who wait for it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from queue import SimpleQueue

from penstock.broker.events import Sync, Synced
from penstock.runtime.disk import RealDisk, RealFile

INLINE_FILES = 2
INLINE_BYTES = 64 * 1024  # with more, the next group is better read while this one is synced


class SyncPool:
    """Runs Sync effects at once while the disk is quick, else on a few threads; `wake_fd` then tells of their end."""

    def __init__(self, disk: RealDisk, threads: int, inline_us_max: int) -> None:
        self._pace = Pace(inline_us_max * 1000)
        self._disk = disk
        self._wanted: SimpleQueue[Sync | None] = SimpleQueue()
        self._ended: deque[tuple[Sync, str | None]] = deque()
        self._threads_max = threads
        self._threads: list[threading.Thread] = []
        self._running = 0
        self.wake_fd, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._is_signalled = False

    def run(self, syncs: list[Sync], size: int) -> list[Synced]:
        """Start the syncs of a step that took in `size` bytes; those that were run at once have ended already."""
        is_small = size <= INLINE_BYTES and sum(len(sync.files) for sync in syncs) <= INLINE_FILES
        if is_small and self._running == 0 and self._pace.is_quick:
            return [self._run_now(sync) for sync in syncs]
        for sync in syncs:
            self._submit(sync)
        return []

    def _submit(self, sync: Sync) -> None:
        self._begin(sync)
        if self._running > len(self._threads) and len(self._threads) < self._threads_max:
            thread = threading.Thread(target=self._work, name=f"sync-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._wanted.put(sync)

    def collect(self) -> list[Synced]:
        """The syncs that have ended since the last call."""
        with suppress(BlockingIOError):
            os.read(self.wake_fd, 64)
        self._is_signalled = False
        ended = []
        while self._ended:
            sync, error = self._ended.popleft()
            ended.append(self._end(sync, error))
        return ended

    def _begin(self, sync: Sync) -> None:
        self._running += 1
        for file in sync.files:
            _real(file).begin_sync()

    def _run_now(self, sync: Sync) -> Synced:
        self._begin(sync)
        return self._end(sync, self._sync(sync))

    def stop(self) -> None:
        for _ in self._threads:
            self._wanted.put(None)
        for thread in self._threads:
            thread.join()

    def _end(self, sync: Sync, error: str | None) -> Synced:
        self._running -= 1
        for file in sync.files:
            _real(file).end_sync()
        return Synced(sync.job, error)

    def _work(self) -> None:
        while (sync := self._wanted.get()) is not None:
            self._ended.append((sync, self._sync(sync)))
            if not self._is_signalled:
                self._is_signalled = True
                os.write(self._wake_write, b"!")

    def _sync(self, sync: Sync) -> str | None:
        began_ns = time.monotonic_ns()
        try:
            for file in sync.files:
                _real(file).run_sync()
            for folder in sync.folders:
                self._disk.sync_folder(folder)
        except OSError as error:
            return str(error)
        finally:
            self._pace.took(time.monotonic_ns() - began_ns)
        return None


class Pace:
    """Whether syncs are quick enough to be waited for: a thread costs two switches, a slow disk stalls everybody."""

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._average_ns = 0

    @property
    def is_quick(self) -> bool:
        return self._average_ns < self._limit_ns

    def took(self, duration_ns: int) -> None:
        """One slow sync is believed at once, many quick ones are needed to forget it."""
        self._average_ns = max(duration_ns, self._average_ns - self._average_ns // 32)


def _real(file: object) -> RealFile:
    if not isinstance(file, RealFile):
        raise TypeError("only files of the real disk are synced here")
    return file
