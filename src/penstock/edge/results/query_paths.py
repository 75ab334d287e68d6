"""Which queries an event passes on its way through an app. Pure."""

from __future__ import annotations

from typing import NamedTuple

from penstock.plan.plan import Plan


class Link(NamedTuple):
    """A query and the topic that it writes."""

    query: str
    writes: str


Way = tuple[Link, ...]


def ways_from(plan: Plan, topic: str) -> dict[str, Way]:
    """Every query that an event of `topic` may reach, each with the shortest way there."""
    found: dict[str, Way] = {}
    ahead: list[tuple[str, Way]] = [(topic, ())]
    for name, way in ahead:
        for query in plan.queries.values():
            if name in query.reads and query.name not in found:
                found[query.name] = (*way, Link(query.name, query.writes))
                ahead.append((query.writes, found[query.name]))
    return found
