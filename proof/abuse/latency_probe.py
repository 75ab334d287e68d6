"""Beats in a process of their own, each of which says how long it took: of a normal client, or of the disk alone.

python -m proof.abuse.latency_probe client PORT TOPIC, or disk FOLDER, until its standard input ends
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from penstock.errors import ErrorCode, PenstockError
from penstock.kafka.records.record import encode_values
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from proof import child_environ
from proof.abuse.raw_client import PlainClient

BEAT_S = 0.005
DISK_BEAT_S = 0.025  # rare enough that the client hardly ever waits for it
BEATS_MIN = 100  # of fewer, there is no p99
_END_WITHIN_S = 60.0  # longer than it waits for an acknowledgement
_VERSION = 9
_BLOCK = bytes(4096)
_BLOCKS = 256  # written again and again: nothing grows, so no beat waits for the file system's journal


class Beat(NamedTuple):
    """When it was due, by the monotonic clock that all processes share, and how much later it had ended."""

    at_s: float
    took_ms: float


def beats_until(due_s: float, acked_s: float, every_s: float = BEAT_S) -> list[Beat]:
    """What the end of one beat says: of that beat, and of all that were due while it was waited for.

    Else a broker that stands still for ten seconds would be one slow record among thousands of quick ones.
    """
    count = max(1, math.ceil((acked_s - due_s) / every_s))
    dues = (due_s + number * every_s for number in range(count))
    return [Beat(at_s, (acked_s - at_s) * 1e3) for at_s in dues]


class Pulse:
    """Beats every few milliseconds from start to stop."""

    def __init__(self, *what: str) -> None:
        self._command = [sys.executable, "-m", "proof.abuse.latency_probe", *what]
        self._process: subprocess.Popen[str] | None = None
        self.beats: list[Beat] = []
        self.is_lost = False  # it was refused, or waited in vain

    @classmethod
    def of_client(cls, port: int, topic: str) -> Self:
        """A record, acknowledged."""
        return cls("client", str(port), topic)

    @classmethod
    def of_disk(cls, folder: Path) -> Self:
        """A block written and synced beside the broker's files, without the broker: what the machine did meanwhile."""
        return cls("disk", str(folder))

    def p99_ms(self, from_s: float, until_s: float) -> float:
        """Of the beats due in that time; NaN if they were too few."""
        took = sorted(beat.took_ms for beat in self.beats if from_s <= beat.at_s < until_s)
        return took[int(len(took) * 0.99)] if len(took) >= BEATS_MIN else math.nan

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=child_environ()
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kind is not None:
            process.kill()
        said, _ = process.communicate(timeout=_END_WITHIN_S)
        if kind is None:
            self.is_lost = process.returncode != 0
            self.beats = [Beat(*each) for each in json.loads(said or "[]")]


def beat_until_told(beat: Callable[[], None], every_s: float, beats: list[Beat]) -> None:
    """Beat when the next is due, wait for its end, note it in `beats`; until standard input ends.

    A beat in vain is noted with the time that it was waited for, then raised.
    """
    due = time.monotonic() + every_s
    while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
        try:
            beat()
        finally:
            more = beats_until(due, time.monotonic(), every_s)
            beats += more
        due = more[-1].at_s + every_s


@contextmanager
def _writing(port: str, topic: str) -> Iterator[Callable[[], None]]:
    with PlainClient(int(port)) as client:
        yield lambda: _write(client, topic)


def _write(client: PlainClient, topic: str) -> None:
    batch = encode_values([b"pulse" * 20], time.time_ns() // 1_000_000)
    request = ProduceRequest(
        None, -1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    )
    answer = client.ask(request, _VERSION, ProduceResponse).responses[0].partition_responses[0]
    if answer.error_code != ErrorCode.NONE:
        raise PenstockError(f"a record of the normal client was refused: error {answer.error_code}")


@contextmanager
def syncing(folder: str) -> Iterator[Callable[[], None]]:
    """What to call to have a block written and synced there; the file goes with it."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        handle = file.fileno()
        os.pwrite(handle, _BLOCK * _BLOCKS, 0)
        os.fsync(handle)
        positions = _rounds(len(_BLOCK), _BLOCKS)
        yield lambda: _sync(handle, next(positions))


def _rounds(size: int, count: int) -> Iterator[int]:
    while True:
        yield from range(0, size * count, size)


def _sync(handle: int, position: int) -> None:
    os.pwrite(handle, _BLOCK, position)
    os.fdatasync(handle)


_KINDS: dict[str, tuple[Callable[..., AbstractContextManager[Callable[[], None]]], float]] = {
    "client": (_writing, BEAT_S),
    "disk": (syncing, DISK_BEAT_S),
}


def main(kind: str, *what: str) -> int:
    """Beat, then say all beats; 1 if one was refused or lost its connection."""
    beats: list[Beat] = []
    status = 0
    begin, every_s = _KINDS[kind]
    try:
        with begin(*what) as beat:
            beat_until_told(beat, every_s, beats)
    except (OSError, EOFError, PenstockError) as lost:
        sys.stderr.write(f"the pulse of the {kind}: {lost!r}\n")
        status = 1
    try:
        sys.stdout.write(json.dumps(beats))
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)  # whoever wanted to know is gone
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
