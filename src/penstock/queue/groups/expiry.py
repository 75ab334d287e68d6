"""Which positions of a group are not needed any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from penstock.queue.core.catalog import Catalog, Topic
from penstock.queue.groups.changes import Position
from penstock.queue.groups.classic.group import Group, State
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.table import Positions


class Use(NamedTuple):
    """How a group uses its positions, whatever protocol it speaks."""

    is_empty: bool
    empty_since_ms: int | None  # None: nobody ever joined, it is only seen when it commits
    reads: Callable[[Topic], bool]


def use_of(group: Group | ConsumerGroup) -> Use:
    if isinstance(group, ConsumerGroup):
        return Use(not group.members, group.since_ms, lambda topic: group.is_subscribed(topic.topic_id))
    since_ms = group.since_ms if group.protocol_type else None
    # Between two generations nobody knows what the next one reads.
    is_settled = group.state is State.STABLE
    return Use(group.state is State.EMPTY, since_ms, lambda topic: not is_settled or group.is_subscribed(topic.name))


def plan_forgotten(
    use: Use, positions: Positions, catalog: Catalog, now_ms: int, retention_ms: int
) -> list[tuple[UUID, int]]:
    """Positions in topics that are gone, and those that nobody has used for the retention time."""
    gone = []
    for key, position in positions.items():
        topic = catalog.by_id(position.topic_id)
        if topic is None or _is_expired(use, topic, position, now_ms, retention_ms):
            gone.append(key)
    return gone


def _is_expired(use: Use, topic: Topic, position: Position, now_ms: int, retention_ms: int) -> bool:
    if not use.is_empty:
        return not use.reads(topic) and now_ms - position.committed_ms >= retention_ms
    if position.expires_ms is not None:
        return now_ms >= position.expires_ms
    return now_ms - max(position.committed_ms, use.empty_since_ms or 0) >= retention_ms
