"""What the page needs to know of an app: its doors, its deliveries, an event to try."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from penstock.events.schema import Column, Type
from penstock.plan.plan import Plan, TopicPlan

_SAMPLES: dict[str, Any] = {
    "string": "text", "binary": "", "boolean": True, "byte": 1, "short": 1, "int": 1, "long": 1,
    "float": 12.5, "double": 12.5, "decimal": 12.5, "date": "2026-01-31",
    "timestamp": "2026-01-31T12:00:00Z", "timestamp_ntz": "2026-01-31T12:00:00",
}  # fmt: skip


def page_facts(plan: Plan) -> dict[str, Any]:
    """The app as its page shows it."""
    return {
        "app": plan.app,
        "doors": [_door(plan, path, door.topic) for path, door in plan.doors.items()],
        "queries": [{"name": q.name, "reads": list(q.reads), "writes": q.writes} for q in plan.queries.values()],
        "deliveries": [
            {
                "at": path.delivery.at,
                "topic": path.delivery.topic,
                "path": path.drawn,
                "promise": f"{path.guarantee.delivery}, loss {path.guarantee.loss}, history {path.guarantee.history}",
            }
            for path in plan.paths
        ],
    }


def _door(plan: Plan, path: str, topic: str) -> dict[str, Any]:
    waits = [query.name for query in plan.queries.values() if topic in query.reads]
    return {"path": f"/ingest/{path}", "topic": topic, "wait": waits[:1], "sample": sample_event(plan.topics[topic])}


def sample_event(topic: TopicPlan) -> str:
    """An event that the topic's schema accepts, as one line of JSON; the page fills in what should be new each time."""
    if topic.schema is None:
        return json.dumps(topic.example or {"hello": "world"})
    given = topic.example or {}
    return json.dumps({column.name: _sample(column, topic, given) for column in topic.schema.columns})


def _sample(column: Column, topic: TopicPlan, given: Mapping[str, Any]) -> Any:
    if column.name in topic.identity and column.type.name == "string":
        return "NEW-ID"
    if column.name == topic.event_time:
        return "NOW"
    return given[column.name] if column.name in given else _value(column.type, column.name)


def _value(kind: Type, name: str) -> Any:
    if kind.name == "array":
        return [_value(kind.items[0], name)]
    if kind.name == "map":
        return {"key": _value(kind.items[1], name)}
    if kind.name == "struct":
        return {column.name: _value(column.type, column.name) for column in kind.columns}
    return f"some {name}" if kind.name == "string" else _SAMPLES[kind.name]
