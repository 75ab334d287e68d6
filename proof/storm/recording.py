"""Histories with times: each process writes its own, and they are joined by the machine's monotonic clock."""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

from penstock.assure.history import Event, HistoryError, Unrecorded, decode_event, encode_event

Stamped = tuple[float, Event]


class StampedRecorder:
    """Every event is with the kernel before the call returns, so that kill -9 loses none."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._lock = threading.Lock()

    def record(self, *events: Event) -> None:
        """Record events that happen now, in this order."""
        with self._lock:
            now = f"{time.monotonic():.6f} ".encode()
            os.write(self._fd, b"".join(now + encode_event(event) for event in events))

    def close(self) -> None:
        os.close(self._fd)


def read_stamped(path: Path) -> Iterator[Stamped]:
    """The events of one file with their times; a last line cut short becomes `Unrecorded`."""
    at = 0.0
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            stamp, _, event = line.partition(b" ")
            if not line.endswith(b"\n"):
                yield at, Unrecorded(path.stem, "the last line of the history was cut short")
                return
            try:
                at = float(stamp)
                yield at, decode_event(event)
            except (ValueError, HistoryError) as error:
                raise HistoryError(f"line {number} of {path.name} is not an event: {error}") from error


def join_histories(paths: Iterable[Path]) -> Iterator[Stamped]:
    """All events of all processes in the order in which they happened."""
    return heapq.merge(*map(read_stamped, paths), key=itemgetter(0))
