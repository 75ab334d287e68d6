"""Produce to result read, through a real-time query."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.child import run_child
from bench.path_run import Running, running
from bench.scene import FSYNC, KAFKA, Scene
from penstock.errors import PenstockError

RATES = (200, 2_000)
WARM_RATE = 2_000
_START_WITHIN_S = 180.0


@dataclass(frozen=True)
class PipelineTrial:
    """One query; warmed, then measured at both rates, each across ten commits. Kafka with fsync: one stretch only."""

    side: str
    query: str
    durability: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`RATE_in_p50`, `RATE_in_p99` inside batches, `RATE_p99`, `RATE_p999` across commits, in ms."""
        pace = scene.pace
        seconds = float(pace.boundaries * (pace.commit_s + 1))
        if self.side == KAFKA and self.durability == FSYNC:
            seconds = pace.pipeline_short_s
        result: dict[str, float] = {}
        with running(scene, self.side, self.query, self.durability) as query:
            first = _warm(query, pace.pipeline_warm_s)
            for rate in RATES:
                told = _load(query, rate, seconds, first, "--checkpoint", str(query.checkpoint))
                first += int(told["produced"])
                result |= {f"{rate}_{name}": value for name, value in told.items()}
        return result


def _warm(query: Running, seconds: float) -> int:
    """Load it until results come, then once more; the number of the next event."""
    first, deadline, has_results = 0, time.monotonic() + _START_WITHIN_S, False
    while True:
        told = _load(query, WARM_RATE if has_results else WARM_RATE // 10, seconds, first)
        first += int(told["produced"])
        if has_results:
            return first
        query.check()
        has_results = told["read"] > 0
        if time.monotonic() > deadline:
            raise PenstockError(f"no result within {_START_WITHIN_S:.0f} s")


def _load(query: Running, rate: int, seconds: float, first: int, *more: str) -> dict[str, float]:
    told: dict[str, float] = run_child(
        "bench.pipeline_load",
        *("--queue", query.queue, "--reads", query.reads, "--writes", query.writes),
        *("--rate", rate, "--seconds", seconds, "--first", first, *more),
        timeout_s=seconds + 120,
    )
    return told
