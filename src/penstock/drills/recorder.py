"""Writes a history as it happens: one file, many threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from penstock.assure.checker import check
from penstock.assure.history import Event, decode_history, encode_event
from penstock.assure.verdict import Verdict


class Recording(Protocol):
    """Whoever takes events down."""

    def record(self, event: Event, /) -> None: ...


class Recorder:
    """Events in the order in which they were recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb", buffering=1024 * 1024)
        self._lock = threading.Lock()

    def record(self, event: Event) -> None:
        line = encode_event(event)
        with self._lock:
            self._file.write(line)

    def events(self) -> Iterator[Event]:
        """All that was recorded so far."""
        with self._lock:
            self._file.flush()
        with self.path.open("rb") as lines:
            yield from decode_history(lines)

    def verdict(self) -> Verdict:
        return check(self.events())

    def close(self) -> None:
        with self._lock:
            self._file.close()
