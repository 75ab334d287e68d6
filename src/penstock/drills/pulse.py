"""A normal client in a process of its own, which says how long each of its acknowledgements took.

python -m penstock.drills.pulse PORT TOPIC, until its standard input ends
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import time
from collections.abc import Sequence
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
END_WITHIN_S = 60.0
_VERSION = 9


class Beat(NamedTuple):
    """One record: when it was acknowledged, by the monotonic clock that all processes share, and after how long."""

    at_s: float
    took_ms: float


class Pulse:
    """Writes a record every few milliseconds from start to stop."""

    def __init__(self, port: int, topic: str) -> None:
        self._command = [sys.executable, "-m", "penstock.drills.pulse", str(port), topic]
        self._process: subprocess.Popen[str] | None = None
        self.beats: list[Beat] = []

    def p99_ms(self, spans_s: Sequence[tuple[float, float]]) -> float:
        """Of the beats of those times; NaN if there were none."""
        took = sorted(beat.took_ms for beat in self.beats if any(begin <= beat.at_s < end for begin, end in spans_s))
        return took[int(len(took) * 0.99)] if took else float("nan")

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
        said, _ = process.communicate(timeout=END_WITHIN_S)
        if kind is None:
            if process.returncode != 0:
                raise PenstockError("the normal client was refused or lost its connection")
            self.beats = [Beat(*each) for each in json.loads(said)]


def beat_until_told(port: int, topic: str) -> list[Beat]:
    """Write, wait for the acknowledgement, pause; until standard input ends."""
    beats = []
    with PlainClient(port) as client:
        while not select.select([sys.stdin], [], [], BEAT_S)[0]:
            batch = encode_values([b"pulse" * 20], time.time_ns() // 1_000_000)
            request = ProduceRequest(
                None, -1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
            )
            begun = time.monotonic()
            answer = client.ask(request, _VERSION, ProduceResponse).responses[0].partition_responses[0]
            ended = time.monotonic()
            if answer.error_code != ErrorCode.NONE:
                raise PenstockError(f"a record of the normal client was refused: error {answer.error_code}")
            beats.append(Beat(ended, (ended - begun) * 1e3))
    return beats


if __name__ == "__main__":
    json.dump(beat_until_told(int(sys.argv[1]), sys.argv[2]), sys.stdout)
