"""What one produce request costs in the pure core: Node.step on a disk in memory, no sockets."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import run_child
from bench.requests import CONNECTIONS
from bench.scene import Scene


@dataclass(frozen=True)
class CoreTrial:
    """One 100 B record a request; `at_once` requests from as many clients in a step, then the end of their sync."""

    side: str
    at_once: int = CONNECTIONS

    def run(self, scene: Scene) -> dict[str, float]:
        """`us` for a request, from its frame to its answer."""
        return {"us": float(run_child("bench.core_load", self.at_once, scene.pace.core_requests)["us"])}
