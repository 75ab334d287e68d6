"""Old records are read from the disk by threads, so that nobody waits but who wants them."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

from penstock.queue.core.events import Load, Loaded, Part
from penstock.queue.server.disk import RealFile

THREADS = 2
_PIECE = 256 * 1024  # what the disk is asked for at once: a sync that comes meanwhile waits for it
_GIVE_WAY_S = 0.002  # for each piece, at most: a disk that always syncs is read at 100 MB/s all the same
_LOOK_S = 0.0001


class ReadPool:
    """Runs Load effects; `wake_fd` tells of their end."""

    def __init__(self, is_syncing: Callable[[], bool]) -> None:
        """Who waits for a sync is live, so that the disk is not asked for old records while `is_syncing`."""
        self._is_syncing = is_syncing
        self._wanted: SimpleQueue[Load] = SimpleQueue()
        self._asked = 0  # how many loads, ever
        self._ended: deque[Load] = deque()
        self._threads = 0
        self.wake_fd, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def submit(self, load: Load) -> None:
        if self._threads < THREADS:
            threading.Thread(target=self._work, name=f"load-{self._threads}", daemon=True).start()
            self._threads += 1
        self._asked += 1
        self._wanted.put(load)

    def collect(self) -> list[Loaded]:
        """Those that have ended since the last call."""
        with suppress(BlockingIOError):
            os.read(self.wake_fd, 4096)
        ended = []
        while self._ended:
            ended.append(Loaded(self._ended.popleft().job))
        return ended

    def _work(self) -> None:
        while True:
            load = self._wanted.get()
            asked = self._asked
            for part in load.parts:
                with suppress(OSError):  # whoever reads it then meets the error, and tells it
                    self._bring(part)
            self._ended.append(load)
            with suppress(BlockingIOError):  # a full pipe wakes the loop as well
                os.write(self._wake_write, b"!")
            for file, position, length in load.parts[-1:]:
                # Who catches up asks for what follows as soon as it has this.
                with suppress(OSError):
                    self._bring(Part(file, position + length, length), asked)

    def _bring(self, part: Part, unless_after: int | None = None) -> None:
        """Read a part; one that nobody has asked for yet only until somebody asks for another."""
        file, position, length = part
        if not isinstance(file, RealFile):
            raise TypeError("only files of the real disk are loaded here")
        # A handle of its own: the loop may give up the file's while this thread reads.
        fd = os.open(file.full_path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
            for at in range(position, position + length, _PIECE):
                if unless_after is not None and unless_after != self._asked:
                    return
                self._give_way()
                os.pread(fd, min(_PIECE, position + length - at), at)
        finally:
            os.close(fd)

    def _give_way(self) -> None:
        until = time.monotonic() + _GIVE_WAY_S
        while self._is_syncing() and time.monotonic() < until:
            time.sleep(_LOOK_S)
