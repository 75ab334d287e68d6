"""A group of the newer protocol (KIP-848): the broker assigns, members follow at their own pace."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from penstock.queue.core.deadlines import Alarm
from penstock.queue.groups.changes import ConsumerEpoch, ConsumerMember, ConsumerTarget, Phase
from penstock.queue.groups.consumer.partitions import Packed, Part, Parts, unpacked

ASSIGNING, RECONCILING, STABLE, EMPTY = "Assigning", "Reconciling", "Stable", "Empty"
LEAVING, RETURNING = -1, -2  # epochs: gone for good; a static member that is about to come back


class ConsumerGroup:
    """Runs ahead of what is durable of it, like a classic group: what it answers waits for that."""

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.since_ms = now_ms
        self.topics: tuple[tuple[UUID, int], ...] = ()  # subscribed to, as of the last epoch, with their partitions
        self.target_epoch = 0
        self.assignor = ""
        self.targets: dict[str, Packed] = {}
        self.members: dict[str, ConsumerMember] = {}
        self.statics: dict[str, str] = {}
        self.owners: dict[Part, str] = {}  # who has a partition, or has not given it back yet
        self.commits = 0  # on their way to the disk
        self.sessions: dict[str, Alarm] = {}
        self.revocations: dict[str, Alarm] = {}
        self.seen_version = -1  # of the catalog, when subscriptions were last looked up

    # What is written about it is also how it changes.

    def put_epoch(self, change: ConsumerEpoch) -> None:
        self.epoch = change.epoch
        self.since_ms = change.since_ms
        self.topics = change.topics

    def put_target(self, change: ConsumerTarget) -> None:
        self.target_epoch = change.epoch
        self.assignor = change.assignor
        self.targets = {member_id: parts for member_id, parts in change.targets if parts}

    def put_member(self, member: ConsumerMember) -> None:
        self._disown(self.members.get(member.member_id))
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.member_id
        for part in held(member):
            self.owners[part] = member.member_id

    def drop_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        self._disown(member)
        self.targets.pop(member_id, None)
        if member is not None and member.instance_id is not None and self.statics.get(member.instance_id) == member_id:
            del self.statics[member.instance_id]
        for alarms in (self.sessions, self.revocations):
            alarm = alarms.pop(member_id, None)
            if alarm is not None:
                alarm.due_ms = None

    def _disown(self, member: ConsumerMember | None) -> None:
        for part in held(member) if member is not None else ():
            if self.owners.get(part) == member.member_id:  # type: ignore[union-attr]  # not None in here
                del self.owners[part]

    # What can be asked of it.

    @property
    def state(self) -> str:
        if not self.members:
            return EMPTY
        if self.epoch > self.target_epoch:
            return ASSIGNING
        is_done = all(m.epoch == self.target_epoch and m.phase is Phase.STABLE for m in self.members.values())
        return STABLE if is_done else RECONCILING

    def target(self, member_id: str) -> Parts:
        return unpacked(self.targets.get(member_id, ()))

    def is_subscribed(self, topic_id: UUID) -> bool:
        return any(topic_id == known for known, _ in self.topics)

    def dynamic(self) -> Iterator[ConsumerMember]:
        """Members that speak the newer protocol themselves."""
        return (member for member in self.members.values() if member.classic is None)


def held(member: ConsumerMember) -> Parts:
    """Partitions that nobody else may be given: what it has, and what it has not given back."""
    return unpacked(member.assigned) | unpacked(member.revoking)
