"""Which positions of a group are not needed any more."""

from __future__ import annotations

from uuid import UUID

from penstock.broker.catalog import Catalog
from penstock.broker.groups.changes import Position
from penstock.broker.groups.group import Group, State
from penstock.broker.groups.table import Positions


def plan_forgotten(
    group: Group, positions: Positions, catalog: Catalog, now_ms: int, retention_ms: int
) -> list[tuple[UUID, int]]:
    """Positions in topics that are gone, and those that nobody has used for the retention time."""
    gone = []
    for key, position in positions.items():
        topic = catalog.by_id(position.topic_id)
        if topic is None or _is_expired(group, topic.name, position, now_ms, retention_ms):
            gone.append(key)
    return gone


def _is_expired(group: Group, topic: str, position: Position, now_ms: int, retention_ms: int) -> bool:
    if position.expires_ms is not None:
        return now_ms >= position.expires_ms and group.state is State.EMPTY
    if group.state is State.EMPTY:
        # Who uses a group without joining it is only seen when it commits.
        used_ms = max(position.committed_ms, group.since_ms) if group.protocol_type else position.committed_ms
        return now_ms - used_ms >= retention_ms
    is_unused = group.state is State.STABLE and not group.is_subscribed(topic)
    return is_unused and now_ms - position.committed_ms >= retention_ms
