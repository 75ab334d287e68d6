"""What is durable of groups of the newer protocol; only replay_ changes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.queue.groups.changes import (
    ConsumerChange,
    ConsumerEpoch,
    ConsumerMember,
    ConsumerMemberGone,
    ConsumerTarget,
)

_PART_BYTES = 40


@dataclass(slots=True)
class StoredConsumers:
    """One group."""

    epoch: ConsumerEpoch
    target: ConsumerTarget | None = None
    members: dict[str, ConsumerMember] = field(default_factory=dict)


class ConsumerTable:
    """Groups by name."""

    def __init__(self) -> None:
        self.groups: dict[str, StoredConsumers] = {}
        self.bytes = 0

    def clear(self) -> None:
        self.groups.clear()
        self.bytes = 0

    def replay_(self, change: ConsumerChange) -> None:
        """Make a durable change true. The epoch of a group comes before all else of it."""
        group = self.groups.get(change.group_id)
        if isinstance(change, ConsumerEpoch):
            if group is None:
                self.groups[change.group_id] = StoredConsumers(change)
            else:
                group.epoch = change
        elif group is None:
            return
        elif isinstance(change, ConsumerTarget):
            group.target = change
        elif isinstance(change, ConsumerMember):
            self._drop(group, change.member_id)
            group.members[change.member_id] = change
            self.bytes += _size(change)
        elif isinstance(change, ConsumerMemberGone):
            self._drop(group, change.member_id)

    def _drop(self, group: StoredConsumers, member_id: str) -> None:
        gone = group.members.pop(member_id, None)
        if gone is not None:
            self.bytes -= _size(gone)

    def remove(self, group_id: str) -> None:
        group = self.groups.pop(group_id, None)
        if group is not None:
            self.bytes -= sum(map(_size, group.members.values()))

    def snapshot(self) -> Iterator[ConsumerChange]:
        """Changes that make this table from nothing."""
        for group in self.groups.values():
            yield group.epoch
            if group.target is not None:
                yield group.target
            yield from group.members.values()


def _size(member: ConsumerMember) -> int:
    parts = sum(len(indexes) for _, indexes in (*member.assigned, *member.revoking))
    return sum(map(len, member.topics)) + len(member.pattern or "") + _PART_BYTES * parts
