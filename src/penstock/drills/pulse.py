"""A normal client in a process of its own, which says how long each of its acknowledgements took.

python -m penstock.drills.pulse PORT TOPIC, until its standard input ends
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import NamedTuple, Self

from penstock.drills.plain_client import PlainClient
from penstock.errors import ErrorCode, PenstockError
from penstock.records.record import encode_values
from penstock.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

BEAT_S = 0.005
BEATS_MIN = 100  # of fewer, there is no p99
_END_WITHIN_S = 60.0  # longer than it waits for an acknowledgement
_VERSION = 9


class Beat(NamedTuple):
    """One record: when it was due, by the monotonic clock that all processes share, and how much later it was acked."""

    at_s: float
    took_ms: float


def beats_until(due_s: float, acked_s: float) -> list[Beat]:
    """What one acknowledgement says: of its own record, and of all that were due while it was waited for.

    Else a broker that stands still for ten seconds would be one slow record among thousands of quick ones.
    """
    count = max(1, math.ceil((acked_s - due_s) / BEAT_S))
    dues = (due_s + number * BEAT_S for number in range(count))
    return [Beat(at_s, (acked_s - at_s) * 1e3) for at_s in dues]


class Pulse:
    """Writes a record every few milliseconds from start to stop."""

    def __init__(self, port: int, topic: str) -> None:
        self._command = [sys.executable, "-m", "penstock.drills.pulse", str(port), topic]
        self._process: subprocess.Popen[str] | None = None
        self.beats: list[Beat] = []
        self.is_lost = False  # it was refused, or waited in vain

    def p99_ms(self, from_s: float, until_s: float) -> float:
        """Of the beats due in that time; NaN if they were too few."""
        took = sorted(beat.took_ms for beat in self.beats if from_s <= beat.at_s < until_s)
        return took[int(len(took) * 0.99)] if len(took) >= BEATS_MIN else math.nan

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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


def beat_until_told(port: int, topic: str, beats: list[Beat]) -> None:
    """Write when the next beat is due, wait for the acknowledgement, note it in `beats`; until standard input ends.

    A beat in vain is noted with the time that it was waited for, then raised.
    """
    with PlainClient(port) as client:
        due = time.monotonic() + BEAT_S
        while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            try:
                _write(client, topic)
            finally:
                more = beats_until(due, time.monotonic())
                beats += more
            due = more[-1].at_s + BEAT_S


def _write(client: PlainClient, topic: str) -> None:
    batch = encode_values([b"pulse" * 20], time.time_ns() // 1_000_000)
    request = ProduceRequest(
        None, -1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    )
    answer = client.ask(request, _VERSION, ProduceResponse).responses[0].partition_responses[0]
    if answer.error_code != ErrorCode.NONE:
        raise PenstockError(f"a record of the normal client was refused: error {answer.error_code}")


def main(port: str, topic: str) -> int:
    """Beat, then say all beats; 1 if the client was refused or lost its connection."""
    beats: list[Beat] = []
    status = 0
    try:
        beat_until_told(int(port), topic, beats)
    except (OSError, EOFError, PenstockError) as lost:
        sys.stderr.write(f"the normal client: {lost!r}\n")
        status = 1
    try:
        sys.stdout.write(json.dumps(beats))
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(1)  # whoever wanted to know is gone
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
