"""What many partitions cost a broker that has nothing to do."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.process import cpu_seconds, resident_bytes
from bench.scene import Scene, say
from bench.start import start_s
from bench.topics import create_topic, use_partitions

_TOPICS = 10  # Kafka's controller refuses more than 10,000 records a request, so one topic cannot have them all


@dataclass(frozen=True)
class PartitionsTrial:
    """10,000 empty partitions in ten topics; the broker is stopped and started again."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`create`, `start` (to the first ack) in s, idle `cpu` in % of a core, `megabytes` then and with all used."""
        with scene.lone_broker(self.side) as node:
            begun = time.monotonic()
            for number in range(_TOPICS):
                create_topic(node.address, f"bench-many-{number}", scene.pace.partitions // _TOPICS)
            create_s = time.monotonic() - begun
            say(f"  {self.side}: partitions made in {create_s:.1f} s")
            node.stop()
            node.start()
            restart_s = start_s(node, f"bench-many-{_TOPICS - 1}")
            time.sleep(scene.pace.idle_s)  # what a start leaves behind is not idling
            cpu_before, begun = cpu_seconds(node.pid), time.monotonic()
            time.sleep(scene.pace.idle_s)
            cpu = (cpu_seconds(node.pid) - cpu_before) / (time.monotonic() - begun)
            unused_bytes = resident_bytes(node.pid)
            # Ours opens a partition when it is first used, Kafka at its start: only used ones compare fairly.
            for number in range(_TOPICS):
                use_partitions(node.address, f"bench-many-{number}", scene.pace.partitions // _TOPICS)
            return {
                "create": create_s,
                "start": restart_s,
                "cpu": cpu * 100,
                "megabytes": unused_bytes / 1e6,
                "megabytes_used": resident_bytes(node.pid) / 1e6,
            }
