"""A plan in words: what starts, where, with which guarantee, and why each setting is what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.guarantee import Guarantee, copies_words
from penstock.plan.plan import Path, Plan, QueryPlan

_QUEUES = {"penstock": "our own broker", "kafka": "Apache Kafka"}


Copies = Mapping[str, tuple[int, int]]


def plan_lines(
    plan: Plan,
    *,
    reasons: bool = False,
    modes: Mapping[str, tuple[str, str | None]] | None = None,
    meanings: Mapping[str, str] | None = None,
    remarks: Mapping[str, Sequence[str]] | None = None,
    copies: Copies | None = None,
) -> Iterator[str]:
    """The plan for people; with `reasons` every setting and why.

    `modes`, `meanings` and `remarks` are what Spark found for each query.

    `copies` are those of topics that a Kafka cluster has already, each with its min.insync.replicas; None if the
    queue is no cluster.
    """
    for topic in plan.topics.values():
        count = f"{topic.partitions} partition{'s' if topic.partitions != 1 else ''}"
        limit = "" if copies is None else copies_words(topic.guarantee, *copies.get(topic.name, topic.copies))
        yield f"topic    {topic.name}: {count}, {in_words(topic.guarantee)}{f' ({limit})' if limit else ''}"
        if reasons:
            settings = topic.rows_of(*plan.tiers_of(topic.name))
            yield from (f"           {s.tier:<8} {s.name} = {s.value}: {s.reason}" for s in settings)
    for door in plan.doors.values():
        yield f"ingest   POST /ingest/{door.path} -> {door.topic}"
    yield from (f"table    {table.name}: {table.text}" for table in plan.tables.values())
    for query in plan.queries.values():
        mode, why = (modes or {}).get(query.name, (query.mode, None))
        found = f"{mode}: {why}" if why else mode
        rows = f", {meanings[query.name]}" if meanings and query.name in meanings else ""
        yield f"query    {query.name}: {', '.join(_inputs(query))} -> {query.writes} ({found}){rows}"
        yield from (f"           {remark}" for remark in (remarks or {}).get(query.name, ()))
    for path in plan.paths:
        yield f"deliver  {path.delivery.at}: {path_words(path)}"


def _inputs(query: QueryPlan) -> list[str]:
    return [f"table {name}" if name in query.tables else name for name in query.inputs]


def path_words(path: Path) -> str:
    """The way to a delivery and what holds of all of it."""
    weak = f"; weakest link: {path.weakest_link}" if path.weakest_link else ""
    return f"{path.drawn}: {in_words(path.guarantee)}{weak}"


def in_words(guarantee: Guarantee) -> str:
    """'at-least-once, loss none, history 7 days, an outage is costly'."""
    return f"{guarantee.delivery}, loss {guarantee.loss}, history {guarantee.history}, an outage is {guarantee.outage}"


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan for programs."""
    return {
        "app": plan.app,
        "topics": [
            {
                "name": topic.name,
                "partitions": topic.partitions,
                "replicas": topic.replicas,
                "guarantee": _answers(topic.guarantee),
                "settings": [
                    {"tier": s.tier, "name": s.name, "value": s.value, "reason": s.reason}
                    for s in topic.rows_of(*plan.tiers_of(topic.name))
                ],
            }
            for topic in plan.topics.values()
        ],
        "tables": [
            {"name": table.name, "format": table.format, "path": table.path, "every": table.every}
            for table in plan.tables.values()
        ],
        "ingest": [{"path": f"/ingest/{door.path}", "topic": door.topic} for door in plan.doors.values()],
        "queries": [
            {"name": q.name, "reads": list(q.reads), "tables": list(q.tables), "writes": q.writes, "mode": q.mode}
            for q in plan.queries.values()
        ],
        "deliveries": [
            {
                "at": path.delivery.at,
                "topic": path.delivery.topic,
                "path": path.drawn,
                "topics": list(path.links),
                "guarantee": _answers(path.guarantee),
                "weakest_link": path.weakest_link,
            }
            for path in plan.paths
        ],
    }


def queue_words(kind: str, address: str) -> str:
    """'our own broker at HOST:PORT'."""
    return f"{_QUEUES[kind]} at {address}"


def _answers(guarantee: Guarantee) -> dict[str, str]:
    return {
        "outage": guarantee.outage,
        "loss": guarantee.loss,
        "history": guarantee.history,
        "delivery": guarantee.delivery,
    }
