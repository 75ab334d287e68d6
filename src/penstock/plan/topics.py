"""The topics that a plan needs, with their settings: its own, dead letters, batch tokens, orders and reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.config.setting import hint
from penstock.events.headers import QUERIES_TOPIC, batches_topic, orders_topic
from penstock.guarantee import UNITS_MS
from penstock.plan.plan import Plan, TopicPlan

INTERNAL_PREFIX = "penstock."  # no app can declare such a name: the topic is Penstock's own
# They are few, and each counts until it is obeyed, however long the app does not run.
_ORDERS = {"retention.ms": "-1", "retention.bytes": "-1"}
# Only the last record counts, however long ago that was.
_BATCHES = {"retention.ms": "-1", "retention.bytes": str(16 * 2**20), "segment.bytes": str(4 * 2**20)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic as the plan wants it."""

    name: str
    partitions: int
    replicas: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    needs_copies: bool = False  # the guarantee does not hold with fewer copies than these


def wanted_topics(plan: Plan) -> Iterator[Wanted]:
    """Every topic that a plan needs: its own, the dead letters, and what the queries report."""
    for topic in plan.topics.values():
        yield Wanted(topic.name, topic.partitions, topic.replicas, topic.queue_settings, _needs_copies(topic))
    for name, source in {**plan.dead_topics, **plan.late_topics}.items():
        yield Wanted(name, 1, source.replicas, source.queue_settings, _needs_copies(source))
    for query in plan.queries.values():
        if query.is_transactional:
            output = plan.topics[query.writes]
            settings = output.queue_settings | _BATCHES
            yield Wanted(batches_topic(plan.app, query.name), 1, output.replicas, settings, _needs_copies(output))
    replicas = max((topic.replicas for topic in plan.topics.values()), default=1)
    if plan.queries:
        yield Wanted(orders_topic(plan.app), 1, replicas, _ORDERS)
    yield Wanted(QUERIES_TOPIC, 1, replicas, {"retention.ms": str(UNITS_MS["hour"])})


def _needs_copies(topic: TopicPlan) -> bool:
    required = topic.policy.queue.copies_required
    return required is not None and required.value


def adopt_faults(plan: Plan, adopt: Collection[str]) -> list[str]:
    """A sentence for each topic that is to be adopted and that the app does not have."""
    known = {topic.name: topic for topic in wanted_topics(plan)}
    return [f"--adopt {name}: the app has no such topic{hint(name, known)}" for name in adopt if name not in known]
