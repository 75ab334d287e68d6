"""What live readers feel of one that has days to catch up on."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.child import result_of, run_child, start_child
from bench.latency import RATE
from bench.latency_consumer import percentile
from bench.produce import produce
from bench.scene import FSYNC, NO_FSYNC, OURS, Scene, say
from penstock.errors import PenstockError

_RECORD_BYTES = 1_000
_PARTITIONS = 4
_LIMIT_S = 600


@dataclass(frozen=True)
class BacklogTrial:
    """1,000 live records/s as in the end-to-end rows, alone, then beside a reader of a backlog that no cache holds."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`alone` and `beside` are p99 in ms, `times` their ratio; `rate` is the reader's, in MB/s."""
        durability = FSYNC if self.side == OURS else NO_FSYNC
        with (
            scene.topic(self.side, durability, _PARTITIONS) as (address, backlog),
            scene.topic(self.side, durability) as (_, live),
        ):
            produce(address, backlog, _RECORD_BYTES, scene.pace.backlog_bytes // _RECORD_BYTES)
            say(f"  {self.side}: backlog of {scene.pace.backlog_bytes / 1e9:.1f} GB written")
            forget_cached(scene.broker(self.side).log_folder)
            return _measure(scene, address, backlog, live)


def _measure(scene: Scene, address: str, backlog: str, live: str) -> dict[str, float]:
    consumer = start_child("bench.live_reader", address, live)
    producer = start_child("bench.latency_producer", address, live, _LIMIT_S * RATE, RATE)
    try:
        time.sleep(scene.pace.latency_warm_s)
        alone_from_ns = time.monotonic_ns()
        time.sleep(scene.pace.latency_s)
        read = run_child("bench.backlog_reader", address, backlog, _PARTITIONS, timeout_s=_LIMIT_S)
    finally:
        producer.kill()
        producer.communicate()
        consumer.terminate()
    samples = result_of(consumer, 60)
    alone = p99_between(samples, alone_from_ns, read["began_ns"])
    beside = p99_between(samples, read["began_ns"], read["ended_ns"])
    rate = read["bytes"] / (read["ended_ns"] - read["began_ns"]) * 1e3
    return {"alone": alone, "beside": beside, "times": beside / alone, "rate": rate}


def p99_between(samples: Sequence[Sequence[int]], from_ns: int, until_ns: int) -> float:
    """The p99 in ms of the samples that came in that time; PenstockError if none did."""
    ordered = sorted(delay for at, delay in samples if from_ns <= at < until_ns)
    if not ordered:
        raise PenstockError("no live record came in the time to be measured")
    return percentile(ordered, 0.99) / 1e6


def forget_cached(folder: Path) -> None:
    """Let the operating system forget what it holds of the files below; what is not on disk yet, stays."""
    os.sync()
    for path in folder.rglob("*.log"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
