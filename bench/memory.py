"""Memory of the broker after it was loaded."""

from __future__ import annotations

from dataclasses import dataclass

from bench.process import resident_bytes
from bench.produce import produce
from bench.scene import FSYNC, NO_FSYNC, OURS, Scene


@dataclass(frozen=True)
class MemoryTrial:
    """The shared broker, after every trial before and one more ProducerPerformance run."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`megabytes` resident."""
        with scene.topic(self.side, FSYNC if self.side == OURS else NO_FSYNC) as (address, topic):
            produce(address, topic, 100, scene.pace.produce_bytes // 100)
            return {"megabytes": resident_bytes(scene.broker(self.side).pid) / 1e6}
