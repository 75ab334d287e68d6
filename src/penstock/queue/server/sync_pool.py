"""Syncs beside the loop, so that a slow disk stalls nobody but those who wait for it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import suppress
from queue import SimpleQueue

from penstock.config.broker import BrokerConfig
from penstock.process.log_lines import log_line
from penstock.queue.core.events import Sync, Synced
from penstock.queue.server.disk import RealDisk, RealFile
from penstock.queue.server.kernel_sync import KernelSyncs
from penstock.queue.server.shared_flush import SharedFlush

INLINE_FILES = 8  # 0.8 ms here: with more, others are better served meanwhile
INLINE_BYTES = 64 * 1024  # with more, the next group is better read while this one is synced
KERNEL_FILES = 64  # more at once were no quicker


class SyncPool:
    """Runs Sync effects, waited for while the disk is quick; else `wake_fd` tells of their end."""

    def __init__(self, disk: RealDisk, config: BrokerConfig) -> None:
        self._disk = disk
        self._pace = Pace(config.sync_inline_us_max * 1000)
        self._running = 0
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._kernel = _kernel_syncs(disk, self.wake_fd) if config.sync_in_kernel else None
        self._flush = _shared_flush(disk) if config.sync_shares_flush else None
        self._in_kernel: dict[int, tuple[Sync, int]] = {}  # by job, with when it began
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
        is_small = size <= INLINE_BYTES and sum(len(sync.files) for sync in syncs) <= INLINE_FILES
        is_waited_for = is_small and self._running == 0 and self._pace.is_quick
        for sync in syncs:
            self._running += 1
            for file in sync.files:
                _real(file).begin_sync()
        if is_waited_for:
            if len(syncs) > 1 and self._flush is not None and all(map(_is_one_file, syncs)):
                return self._sync_together(self._flush, syncs)
            if len(syncs) == 1 or self._kernel is None:
                return [self._end(sync, self._sync(sync)) for sync in syncs]
        began_ns = time.monotonic_ns()
        self._submit(syncs, began_ns, is_told=not is_waited_for)
        if not is_waited_for:
            return []
        ended = self._collect_kernel(at_least=len(self._in_kernel))
        self._pace.took(time.monotonic_ns() - began_ns)
        return ended

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
        if self._kernel is not None:
            self._kernel.close()
        os.close(self.wake_fd)

    def _submit(self, syncs: list[Sync], began_ns: int, *, is_told: bool) -> None:
        """One file that was written, as nearly every sync is, for the kernel; what else there is, for threads."""
        calls: list[tuple[int, int]] = []
        for sync in syncs:
            handle = _real(sync.files[0]).open_handle if _is_one_file(sync) else -1
            if self._kernel is None or handle < 0 or len(calls) == self._kernel.room:
                self._give_to_thread(sync)
            else:
                self._in_kernel[sync.job] = sync, began_ns
                calls.append((sync.job, handle))
        if self._kernel is not None and calls:
            for job, _ in calls[self._kernel.submit(calls, is_told=is_told) :]:
                self._give_to_thread(self._in_kernel.pop(job)[0])  # the kernel did not try it: a thread learns why

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

    def _sync_together(self, flush: SharedFlush, syncs: list[Sync]) -> list[Synced]:
        """One flush for those that need no more; a file with unsynced writes has its handle."""
        began_ns = time.monotonic_ns()
        ended, handles = [], {}
        for sync in syncs:
            file = _real(sync.files[0])
            if file.is_overwritten_on(flush.device):
                handles[sync.job] = file.open_handle
            else:
                ended.append(self._end(sync, self._sync(sync)))
        errors = flush.run(list(handles.values()))
        self._pace.took(time.monotonic_ns() - began_ns)
        for sync in syncs:
            if sync.job in handles:
                number = errors[handles[sync.job]]
                ended.append(self._end(sync, os.strerror(number) if number else None))
        return ended

    def _collect_kernel(self, at_least: int) -> list[Synced]:
        if self._kernel is None or not self._in_kernel:
            return []
        ended = []
        for job, number in self._kernel.ended(at_least):
            sync, began_ns = self._in_kernel.pop(job)
            self._pace.took_at_most(time.monotonic_ns() - began_ns)
            ended.append(self._end(sync, os.strerror(number) if number else None))
        return ended

    def _end(self, sync: Sync, error: str | None) -> Synced:
        self._running -= 1
        for file in sync.files:
            _real(file).end_sync(is_durable=error is None)
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

    def took_at_most(self, duration_ns: int) -> None:
        """A sync had ended when somebody looked: it was no slower than that, and perhaps the looking was late."""
        self.took(min(duration_ns, self._average_ns))


def _kernel_syncs(disk: RealDisk, wake_fd: int) -> KernelSyncs | None:
    """None where the kernel, the sandbox around us or the file system has none: tried out on the data folder."""
    folder = os.open(disk.full_path(""), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        kernel = KernelSyncs(KERNEL_FILES, wake_fd)
        if kernel.submit([(0, folder)], is_told=False) == 1 and kernel.ended(at_least=1) == [(0, 0)]:
            return kernel
        reason = "it does not sync the data folder"
    except OSError as error:
        reason = str(error)
    finally:
        os.close(folder)
    log_line("info", "syncs run in threads", reason=f"the kernel cannot run them by itself: {reason}")
    return None


def _shared_flush(disk: RealDisk) -> SharedFlush | None:
    """None where one flush for several files may not do."""
    try:
        return SharedFlush(disk.full_path(""))
    except OSError as error:
        log_line("info", "each file is synced with a flush of its own", reason=str(error))
        return None


def _is_one_file(sync: Sync) -> bool:
    return len(sync.files) == 1 and not sync.folders and _real(sync.files[0]).open_handle >= 0


def _real(file: object) -> RealFile:
    if not isinstance(file, RealFile):
        raise TypeError("only files of the real disk are synced here")
    return file
