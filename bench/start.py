"""Time from the start of the process to the first acknowledged record."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.penstock_node import PenstockNode
from bench.process import start_since_boot_s
from bench.scene import Node, Scene
from bench.topics import create_topic, first_ack


@dataclass(frozen=True)
class StartTrial:
    """An empty data folder; a topic is made and one raw record acknowledged as the broker does by default."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`seconds` until the ack."""
        with scene.lone_broker(self.side) as node:
            create_topic(node.address, "bench-start")
            return {"seconds": start_s(node, "bench-start")}


def start_s(node: Node, topic: str) -> float:
    """From the beginning of the broker's process to the first record that it acknowledges."""
    return first_ack(node.address, topic) - _started_at(node)


def _started_at(node: Node) -> float:
    """The monotonic time at which the broker's process began; Kafka's formatting before it is not counted."""
    if isinstance(node, PenstockNode):
        return node.started_at
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start_since_boot_s(node.pid)
    return time.monotonic() - age_s
