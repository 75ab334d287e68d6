"""Syncs beside the loop, so that a slow disk stalls nobody but those who wait for it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue

from penstock.broker.events import Sync, Synced
from penstock.config import BrokerConfig
from penstock.runtime.disk import RealDisk, RealFile
from penstock.runtime.kernel_syncs import KernelSyncs
from penstock.runtime.logs import log_line

INLINE_FILES = 8
INLINE_BYTES = 64 * 1024  # with more, the next group is better read while this one is synced
KERNEL_FILES = 64


@dataclass(slots=True)
class _Job:
    """A sync the kernel runs: its end is that of its last file."""

    sync: Sync
    files_left: int
    began_ns: int
    error: str | None = None


class SyncPool:
    """Runs Sync effects, waited for while the disk is quick; else `wake_fd` tells of their end."""

    def __init__(self, disk: RealDisk, config: BrokerConfig) -> None:
        self._disk = disk
        self._pace = Pace(config.sync_inline_us_max * 1000)
        self._running = 0
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._kernel = _kernel_syncs(self.wake_fd) if config.sync_in_kernel else None
        self._jobs: dict[int, _Job] = {}
        self._refused: list[tuple[int, str | None]] = []  # by the kernel: synced by us, with what came of it
        self._last_ticket = 0
        self._wanted: SimpleQueue[Sync | None] = SimpleQueue()
        self._ended: deque[tuple[Sync, str | None]] = deque()
        self._threads_max = config.sync_threads
        self._threads: list[threading.Thread] = []
        self._threads_busy = 0

    def is_syncing(self) -> bool:
        """Whether a sync is under way; asked in any thread."""
        return self._running > 0

    def run(self, syncs: list[Sync], size: int) -> list[Synced]:
        """Start the syncs of a step that took in `size` bytes; those that were run at once have ended already."""
        files = sum(len(sync.files) for sync in syncs)
        is_small = size <= INLINE_BYTES and files <= INLINE_FILES
        is_waited_for = is_small and self._running == 0 and self._pace.is_quick
        for sync in syncs:
            self._running += 1
            for file in sync.files:
                _real(file).begin_sync()
        if is_waited_for and (files <= 1 or self._kernel is None):
            return [self._end(sync, self._sync(sync)) for sync in syncs]
        in_kernel = self._submit(syncs, is_told=not is_waited_for)
        return self._collect_kernel(at_least=in_kernel) if is_waited_for and in_kernel else []

    def collect(self) -> list[Synced]:
        """The syncs that have ended since the last call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.wake_fd)
        ended = []
        while self._ended:
            self._threads_busy -= 1
            ended.append(self._end(*self._ended.popleft()))
        return ended + self._collect_kernel(at_least=0)

    def stop(self) -> None:
        """Call it when no sync is under way."""
        for _ in self._threads:
            self._wanted.put(None)
        for thread in self._threads:
            thread.join()

    def _submit(self, syncs: list[Sync], *, is_told: bool) -> int:
        """Hand them to the kernel, or to threads those it cannot take; how many files it syncs now."""
        calls: list[tuple[int, RealFile]] = []
        for sync in syncs:
            if self._kernel is None or sync.folders or len(calls) + len(sync.files) > self._kernel.room:
                self._give_to_thread(sync)
                continue
            self._last_ticket += 1
            self._jobs[self._last_ticket] = _Job(sync, len(sync.files), time.monotonic_ns())
            calls += [(self._last_ticket, _real(file)) for file in sync.files]
        if self._kernel is None or not calls:
            return 0
        taken = self._kernel.submit([(ticket, file.handle()) for ticket, file in calls], is_told=is_told)
        for ticket, file in calls[taken:]:
            self._refused.append((ticket, _error_of(file)))
            os.eventfd_write(self.wake_fd, 1)
        return taken

    def _give_to_thread(self, sync: Sync) -> None:
        self._threads_busy += 1
        if self._threads_busy > len(self._threads) and len(self._threads) < self._threads_max:
            thread = threading.Thread(target=self._work, name=f"sync-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._wanted.put(sync)

    def _work(self) -> None:
        while (sync := self._wanted.get()) is not None:
            self._ended.append((sync, self._sync(sync)))
            os.eventfd_write(self.wake_fd, 1)

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

    def _collect_kernel(self, at_least: int) -> list[Synced]:
        if self._kernel is None or not self._jobs:
            return []
        results, self._refused = self._refused, []
        for ticket, number in self._kernel.ended(at_least):
            results.append((ticket, os.strerror(number) if number else None))
        ended = []
        for ticket, error in results:
            job = self._jobs[ticket]
            job.files_left -= 1
            job.error = job.error or error
            if job.files_left == 0:
                del self._jobs[ticket]
                self._pace.took(time.monotonic_ns() - job.began_ns)
                ended.append(self._end(job.sync, job.error))
        return ended

    def _end(self, sync: Sync, error: str | None) -> Synced:
        self._running -= 1
        for file in sync.files:
            _real(file).end_sync()
        return Synced(sync.job, error)


class Pace:
    """Whether syncs are quick enough to be waited for: a slow disk would stall everybody."""

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        self._average_ns = 0

    @property
    def is_quick(self) -> bool:
        return self._average_ns < self._limit_ns

    def took(self, duration_ns: int) -> None:
        """One slow sync is believed at once, many quick ones are needed to forget it."""
        self._average_ns = max(duration_ns, self._average_ns - self._average_ns // 32)


def _kernel_syncs(wake_fd: int) -> KernelSyncs | None:
    try:
        return KernelSyncs(KERNEL_FILES, wake_fd)
    except OSError as error:
        log_line("info", "syncs run in threads", reason=f"the kernel's own cannot be had: {error}")
        return None


def _error_of(file: RealFile) -> str | None:
    """Sync it here and now: what went wrong, if anything."""
    try:
        file.run_sync()
    except OSError as error:
        return str(error)
    return None


def _real(file: object) -> RealFile:
    if not isinstance(file, RealFile):
        raise TypeError("only files of the real disk are synced here")
    return file
