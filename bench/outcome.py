"""From many rounds to one line."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.row import Row
from bench.runner import Values


@dataclass(frozen=True)
class Outcome:
    """A row with what was measured; medians over rounds."""

    row: Row
    ours: list[float]
    kafka: list[float]

    @property
    def ours_median(self) -> float:
        return statistics.median(self.ours)

    @property
    def kafka_median(self) -> float | None:
        return statistics.median(self.kafka) if self.kafka else None

    @property
    def ratio(self) -> float | None:
        """Ours divided by the peer's."""
        peer = self.kafka_median
        return self.ours_median / peer if peer else None

    @property
    def is_reached(self) -> bool | None:
        """Whether the goal is met; None where there is none, or no peer to judge it by."""
        if self.row.is_judged_alone:
            return self.row.is_reached(self.ours_median)
        return None if self.ratio is None else self.row.is_reached(self.ratio)

    def line(self) -> str:
        """`bench NAME OURS PEER RATIO`; a dash for what there is not."""
        ratio = "-" if self.ratio is None else f"{self.ratio:.2f}"
        return f"bench {self.row.name} {number(self.ours_median)} {number(self.kafka_median)} {ratio}"

    def to_json(self) -> dict[str, Any]:
        """The row as the JSON file keeps it."""
        row = self.row
        return {
            "name": row.name,
            "title": row.title,
            "unit": row.unit,
            "ours": self.ours_median,
            "kafka": self.kafka_median,
            "ratio": self.ratio,
            "ours_rounds": self.ours,
            "kafka_rounds": self.kafka,
            "section": row.section,
            "peer": row.peer,
            "judged_alone": row.is_judged_alone,
            "more_is_better": row.more_is_better,
            "goal": row.goal,
            "stretch": row.stretch,
            "reached": self.is_reached,
        }


def outcomes(rows: Sequence[Row], values: Values) -> list[Outcome]:
    """One outcome a row."""
    return [
        Outcome(
            row,
            [result[row.value] for result in values[row.ours]],
            [result[row.value] for result in values.get(row.kafka, [])] if row.kafka is not None else [],
        )
        for row in rows
    ]


def number(value: float | None) -> str:
    """A measured value without false precision, and without separators."""
    if value is None:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    """Smallest and largest of the rounds."""
    return f"{number(min(values))}..{number(max(values))}" if values else "-"
