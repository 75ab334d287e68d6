"""What consumers cost that have nothing to read."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import run_child
from bench.scene import NO_FSYNC, Scene

CONSUMERS = 1_000
_PARTITIONS = 100


@dataclass(frozen=True)
class IdleTrial:
    """1,000 consumers in ten groups: a heartbeat every 3 s, a fetch that waits 500 ms, two connections each."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`cpu` of the broker in % of one core, and its `megabytes`."""
        with scene.topic(self.side, NO_FSYNC, _PARTITIONS) as (address, topic):
            pid = scene.broker(self.side).pid
            told = run_child("bench.idle_load", address, topic, _PARTITIONS, CONSUMERS, scene.pace.idle_s, pid)
            return {name: float(value) for name, value in told.items()}
