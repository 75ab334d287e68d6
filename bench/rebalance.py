"""How long a group of many members takes to share its partitions anew."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import run_child
from bench.scene import NO_FSYNC, Scene

MEMBERS = 100


@dataclass(frozen=True)
class RebalanceTrial:
    """100 members of the classic protocol in one process; one joins, all join again and fetch their share."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`ms`: the median of several rebalances."""
        with scene.topic(self.side, NO_FSYNC, MEMBERS) as (address, topic):
            times = scene.pace.rebalances
            return {"ms": float(run_child("bench.rebalance_load", address, topic, topic, MEMBERS, times)["ms"])}
