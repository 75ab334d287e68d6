"""Syncs in threads, so that a slow disk stalls nobody but those who wait for it."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from queue import SimpleQueue

from penstock.broker.events import Sync, Synced
from penstock.runtime.disk import RealDisk, RealFile


class SyncPool:
    """Runs Sync effects on a few threads; `wake_fd` becomes readable when some have ended."""

    def __init__(self, disk: RealDisk, threads: int) -> None:
        self._disk = disk
        self._wanted: SimpleQueue[Sync | None] = SimpleQueue()
        self._ended: deque[tuple[Sync, str | None]] = deque()
        self._threads_max = threads
        self._threads: list[threading.Thread] = []
        self._running = 0
        self.wake_fd, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._is_signalled = False

    def submit(self, sync: Sync) -> None:
        for file in sync.files:
            _real(file).begin_sync()
        self._running += 1
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

    def run_now(self, sync: Sync) -> Synced:
        """Sync in the calling thread."""
        for file in sync.files:
            _real(file).begin_sync()
        self._running += 1
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
        try:
            for file in sync.files:
                _real(file).run_sync()
            for folder in sync.folders:
                self._disk.sync_folder(folder)
        except OSError as error:
            return str(error)
        return None


def _real(file: object) -> RealFile:
    if not isinstance(file, RealFile):
        raise TypeError("only files of the real disk are synced here")
    return file
