"""A row of the table: two trials, what of them is compared, and what must be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bench.scene import Scene

QUEUE, PATH = "queue", "path"


class Trial(Protocol):
    """One measurement on one broker; equal trials are run once for all rows that use them."""

    @property
    def side(self) -> str: ...

    def run(self, scene: Scene) -> dict[str, float]: ...


@dataclass(frozen=True)
class Row:
    """Two trials and the value of theirs that is compared. A goal is a ratio ours/peer, or a value where alone."""

    name: str
    title: str
    unit: str
    ours: Trial
    kafka: Trial | None
    value: str
    more_is_better: bool = True
    goal: float | None = None
    stretch: float | None = None
    section: str = QUEUE
    peer: str = "Apache Kafka"
    is_goal_a_value: bool = False

    @property
    def is_judged_alone(self) -> bool:
        """Whether the goal is a value of ours, not a ratio."""
        return self.kafka is None or self.is_goal_a_value

    def is_reached(self, measured: float) -> bool | None:
        """Whether the goal is met by this ratio, or by this value where it is one; None without a goal."""
        if self.goal is None:
            return None
        return measured >= self.goal if self.more_is_better else measured <= self.goal
