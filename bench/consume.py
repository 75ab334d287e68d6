"""Records a second read from a topic that is there already."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import run_child
from bench.produce import produce
from bench.scene import FSYNC, NO_FSYNC, OURS, Scene


@dataclass(frozen=True)
class ConsumeTrial:
    """One partition, written by ProducerPerformance, read from its start by `reader`; the writing is not measured."""

    side: str
    record_bytes: int
    reader: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in records/s."""
        records = scene.pace.consume_bytes // self.record_bytes
        with scene.topic(self.side, FSYNC if self.side == OURS else NO_FSYNC) as (address, topic):
            produce(address, topic, self.record_bytes, records)
            return {"rate": float(run_child(self.reader, address, topic, records)["rate"])}
