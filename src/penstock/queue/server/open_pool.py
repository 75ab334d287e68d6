"""Threads that open produced batches too large for the event loop, and check their records."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import deque
from contextlib import suppress
from queue import SimpleQueue

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode
from penstock.kafka.records.batch import Refusal
from penstock.kafka.records.opening import large_refusal
from penstock.process.log_lines import log_line
from penstock.queue.core.events import Open, Opened


class OpenPool:
    """Runs Open effects; `wake_fd` becomes readable when one has ended."""

    def __init__(self, config: BrokerConfig) -> None:
        self._bytes_max = config.opened_bytes_max
        self._threads_max = config.openings_max
        self._wanted: SimpleQueue[Open] = SimpleQueue()
        self._ended: deque[Opened] = deque()
        self._threads = 0
        self._busy = 0
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def submit(self, job: Open) -> None:
        """Open the batches of a request, one after the other, in a thread of its own."""
        self._busy += 1
        if self._threads < min(self._busy, self._threads_max):
            # Daemons: a stop does not wait for them, since nothing is promised about a request without an answer.
            threading.Thread(target=self._work, name=f"open-{self._threads}", daemon=True).start()
            self._threads += 1
        self._wanted.put(job)

    def collect(self) -> list[Opened]:
        """The jobs that have ended since the last call."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.wake_fd)
        ended = []
        while self._ended:
            ended.append(self._ended.popleft())
            self._busy -= 1
        return ended

    def _work(self) -> None:
        while True:
            job = self._wanted.get()
            self._ended.append(Opened(job.job, [self._refusal(batch) for batch in job.batches]))
            del job  # the request may be large, and the next one may come much later
            os.eventfd_write(self.wake_fd, 1)

    def _refusal(self, batch: memoryview) -> Refusal | None:
        try:
            return large_refusal(batch, self._bytes_max, _let_others_run)
        except Exception:  # noqa: BLE001  # the top of a thread: without an answer the client waits for ever
            log_line("error", "a batch could not be checked", detail=traceback.format_exc())
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker failed to check the records: see its log")


def _let_others_run() -> None:
    """Compiled code keeps the interpreter to itself until it lets go."""
    time.sleep(0)
