"""Time from produce to consume at 1,000 records a second."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import result_of, start_child
from bench.scene import Scene

RATE = 1_000


@dataclass(frozen=True)
class LatencyTrial:
    """confluent-kafka twice, each a process: a producer (linger 0, acks=all), a consumer with an assigned partition."""

    side: str
    durability: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`p50`, `p99` and `p999` in ms, the start left out."""
        pace = scene.pace
        warm, measured = int(pace.latency_warm_s * RATE), int(pace.latency_s * RATE)
        with scene.topic(self.side, self.durability) as (address, topic):
            consumer = start_child("bench.latency_consumer", address, topic, warm, measured)
            producer = start_child("bench.latency_producer", address, topic, warm + measured, RATE)
            limit_s = pace.latency_warm_s + pace.latency_s + 60
            result_of(producer, limit_s)
            result = result_of(consumer, limit_s)
        return {name: float(value) for name, value in result.items()}
