"""Real time or micro-batches: what a plan allows, and the reason in people's words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.analyze.frames.plans import analyzed_plan, items, name_of, nodes
from penstock.plan.policies import Mode

RunMode = Literal[Mode.REALTIME, Mode.MICROBATCH]  # auto has become one of the two

STATEFUL = (
    "Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState", "TransformWithState", "TransformWithStateInPySpark",
)  # fmt: skip
_NOT_IN_REAL_TIME = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithState": "transformWithState",
    "TransformWithStateInPySpark": "transformWithState in Python",
    "MapInPandas": "mapInPandas",
    "MapInArrow": "mapInArrow",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
}
_REFUSED = re.compile(r"STREAMING_REAL_TIME_MODE\.?(\w+)?|REAL_TIME_MODE|ALLOWLIST|IDENTICAL_SOURCES_IN_UNION")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a plan, as far as modes care."""

    name: str
    streaming_children: int = 0
    python: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """The mode of a query, and why it is not real time."""

    mode: RunMode
    reason: str | None = None


def obstacle(operators: Sequence[Operator]) -> str | None:
    """Why Spark would not run these in real time, as far as can be told before it is tried."""
    for operator in operators:
        if operator.name == "Join" and operator.streaming_children > 1:
            return "stream-stream join: not in Real-Time Mode"
        if operator.name in _NOT_IN_REAL_TIME:
            return f"{_NOT_IN_REAL_TIME[operator.name]}: not in Real-Time Mode"
        if operator.python:
            return "Python function in the query: not in Real-Time Mode"
    return None


def is_stateful(operators: Sequence[Operator]) -> bool:
    """Whether a query remembers anything between events."""
    return any(o.name in STATEFUL or (o.name == "Join" and o.streaming_children > 1) for o in operators)


def choose(asked: Mode, every_ms: int | None, found: str | None) -> Choice:
    """The mode for what the user asked and what stands against real time."""
    if asked is Mode.MICROBATCH:
        return Choice(Mode.MICROBATCH, "mode='microbatch'")
    if every_ms is not None and asked is not Mode.REALTIME:
        return Choice(Mode.MICROBATCH, "every is given")
    if asked is Mode.AUTO and found is not None:
        return Choice(Mode.MICROBATCH, found)
    return Choice(Mode.REALTIME)


def may_be_real_time(asked: Mode, every_ms: int | None, kept: Choice | None, against: str | None) -> bool:
    """Whether a query may run in real time, as far as can be told before Spark is asked; `kept`: it was begun so.

    `against` is why its guarantee rules real time out, or None.
    """
    choice = kept or choose(asked, every_ms, against)
    return choice.mode is Mode.REALTIME


def refusal(said: str) -> str | None:
    """Spark's own refusal of real time in a few words, or None if this is another failure."""
    if _REFUSED.search(said) is None:
        return None
    operators = re.search(r"operator(?:\(s\)|s)?:?\s*([\w., ]+?)(?:\s+not|\s+is|\.|$)", said)
    what = operators[1].strip() if operators else "an operator"
    return f"{what}: not in Real-Time Mode"


def operators_of(frame: Any) -> list[Operator]:
    """The operators of a DataFrame's analyzed plan, from Spark's own tree."""
    plan = analyzed_plan(frame)
    patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    found = []
    for node in nodes(plan):
        name = name_of(node)
        streaming = sum(child.isStreaming() for child in items(node.children())) if name == "Join" else 0
        found.append(Operator(name, streaming))
    if plan.containsPattern(patterns.PYTHON_UDF()):
        found.append(Operator("Project", python=True))
    return found
