"""Requests a second, one record each, from many connections."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import run_child
from bench.scene import Scene
from bench.topics import end_offset, first_ack
from penstock.errors import PenstockError

CONNECTIONS = 50
RECORD_BYTES = 100


@dataclass(frozen=True)
class RequestsTrial:
    """50 connections to one partition, each with `window` requests in flight; acks=all, not idempotent."""

    side: str
    window: int
    durability: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in acknowledged requests/s."""
        return self.run_for(scene, scene.pace.requests_warm_s, scene.pace.requests_s)

    def run_for(self, scene: Scene, warm_s: float, measure_s: float) -> dict[str, float]:
        """The same with lengths of its own."""
        with scene.topic(self.side, self.durability) as (address, topic):
            first_ack(address, topic)
            load = run_child("bench.request_load", address, topic, CONNECTIONS, self.window, warm_s, measure_s)
            stored = end_offset(address, topic) - 1
        # The load generator counts answers and does not read them: a refusal shows here.
        if stored < load["answers"]:
            raise PenstockError(f"{self.side} answered {load['answers']} requests and kept {stored} records")
        return {"rate": float(load["rate"])}
