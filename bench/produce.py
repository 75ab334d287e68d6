"""Records a second with Kafka's own ProducerPerformance at its default settings."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.scene import FSYNC, Scene
from penstock.errors import PenstockError
from proof.oracle.tools import run_tool

_RATE = re.compile(r"steady state records sent, ([\d.]+) records/sec")
_WARM_SHARE = 0.3  # the client is compiled while it runs: its first seconds say nothing about a broker


@dataclass(frozen=True)
class ProduceTrial:
    """acks=all, idempotent, batch.size 16384, linger.ms 5, five requests in flight: the client's defaults."""

    side: str
    record_bytes: int
    durability: str
    partitions: int = 1

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in records/s, after the client's own warm-up."""
        many = self.durability == FSYNC and self.partitions > 1
        size = scene.pace.produce_bytes_fsync_many if many else scene.pace.produce_bytes
        with scene.topic(self.side, self.durability, self.partitions) as (address, topic):
            return {"rate": produce(address, topic, self.record_bytes, size // self.record_bytes)}


def produce(address: str, topic: str, record_bytes: int, records: int) -> float:
    """Records a second of one ProducerPerformance run, its first part left out."""
    done = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--bootstrap-server", address, "--topic", topic),
        *("--num-records", str(records), "--record-size", str(record_bytes), "--throughput", "-1"),
        *("--warmup-records", str(int(records * _WARM_SHARE))),
        timeout=600,
    )
    return steady_rate(done.stdout, done.stderr)


def steady_rate(said: str, errors: str = "") -> float:
    """The steady rate in what ProducerPerformance printed; PenstockError if records failed."""
    found = _RATE.search(said)
    if found is None or "Exception" in said + errors:
        raise PenstockError(f"ProducerPerformance failed: {(errors or said).strip()[-1000:]}")
    return float(found.group(1))
