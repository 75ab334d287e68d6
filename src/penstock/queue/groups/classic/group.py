"""A classic group: its state, its members, and what can be asked of it without changing anything else."""

from __future__ import annotations

from enum import Enum

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from penstock.kafka.wire.messages.sync_group import SyncGroupResponse
from penstock.queue.core.deadlines import Alarm
from penstock.queue.groups.changes import GroupStored
from penstock.queue.groups.classic.member import Member, restored_member
from penstock.queue.groups.subscription import subscribed_topics

PENDING_BYTES = 500  # about what an id takes that was given out
CONSUMER = "consumer"  # the protocol type of Kafka's own consumers, whose subscriptions we can read


class State(Enum):
    """As Kafka calls them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Tally:
    """How much memory the members of all groups take."""

    def __init__(self) -> None:
        self.bytes = 0


class Group:
    """Runs ahead of what is durable of it: what it answers waits for that."""

    def __init__(self, group_id: str, tally: Tally, now_ms: int) -> None:
        self.group_id = group_id
        self.tally = tally
        self.state = State.EMPTY
        self.since_ms = now_ms
        self.protocol_type = ""
        self.generation = 0
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.statics: dict[str, str] = {}
        self.pending: dict[str, Alarm] = {}  # ids given out, not yet used
        self.commits = 0  # on their way to the disk
        self._supporters: dict[str, int] = {}  # how many members understand a protocol
        self.unsynced: dict[str, None] = {}  # members that have not asked for their assignment
        self.is_forming = False  # the first members are waited for
        self.has_newcomer = False
        self.join_alarm = Alarm()
        self.sync_alarm = Alarm()
        self.topics: frozenset[str] | None = None  # subscribed to by all members, if it can be known

    def move_to(self, state: State, now_ms: int) -> None:
        self.state = state
        self.since_ms = now_ms

    # Who belongs to it.

    def give_id(self, member_id: str, alarm: Alarm) -> None:
        """Remember an id that a newcomer was told to come back with."""
        self.pending[member_id] = alarm
        self.tally.bytes += PENDING_BYTES

    def take_id(self, member_id: str) -> bool:
        """Whether this id was given out; from now on it is not pending."""
        alarm = self.pending.pop(member_id, None)
        if alarm is None:
            return False
        alarm.due_ms = None
        self.tally.bytes -= PENDING_BYTES
        return True

    def set_protocols(self, member: Member, protocols: dict[str, bytes]) -> None:
        """What a member understands, and what it says to the leader in each of them."""
        self._count(member, -1)
        member.protocols = protocols
        self._count(member, 1)

    def _count(self, member: Member, by: int) -> None:
        self.tally.bytes += by * member.protocol_bytes
        for name in member.protocols:
            self._supporters[name] = self._supporters.get(name, 0) + by
            if not self._supporters[name]:
                del self._supporters[name]

    def add(self, member: Member) -> None:
        self.members[member.member_id] = member
        self._count(member, 1)
        if member.instance_id is not None:
            self.statics[member.instance_id] = member.member_id
        self.leader = self.leader or member.member_id

    def remove(self, member_id: str) -> None:
        """Forget a member; whatever it waits for, it is told so."""
        member = self.members.pop(member_id, None)
        self.unsynced.pop(member_id, None)
        if member is None:
            return
        answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        member.alarm.due_ms = None
        self._count(member, -1)
        if member.instance_id is not None and self.statics.get(member.instance_id) == member_id:
            del self.statics[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, old_id: str, new_id: str) -> Member:
        """A static member came back and has a new id; whoever used the old one is fenced."""
        member = self.members.pop(old_id)
        answer_join(member, JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
        answer_sync(member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        member.member_id = new_id
        self.members[new_id] = member
        if member.instance_id is not None:
            self.statics[member.instance_id] = new_id
        if old_id in self.unsynced:
            del self.unsynced[old_id]
            self.unsynced[new_id] = None
        if self.leader == old_id:
            self.leader = new_id
        return member

    def fault_of(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Why this is no member, or NONE."""
        if instance_id is not None:
            known = self.statics.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def refuse_commit(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Why these positions are not taken, or NONE."""
        if generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE  # nobody else is there: a tool, or a consumer that assigns itself
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if fault := self.fault_of(member_id, instance_id):
            return fault
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.COMPLETING else ErrorCode.NONE

    def is_subscribed(self, topic: str) -> bool:
        if self.topics is None:
            return bool(self.members) and self.protocol_type == CONSUMER
        return topic in self.topics

    # Generations.

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(member.on_joined is not None for member in self.members.values())

    def understands(self, protocol_type: str, names: list[str]) -> bool:
        """Whether a member that knows these protocols can work with the others."""
        if not protocol_type or not names:
            return False
        if not self.members:
            return True
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(self._supporters.get(n) == everybody for n in names)

    def select_protocol(self) -> str:
        """The one most members like best."""
        shared = {name for name, count in self._supporters.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(shared)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def elect_joined_leader(self) -> bool:
        """Whether the leader, or another in its place, takes part in this generation."""
        if self.leader in self.members and self.members[self.leader].on_joined is not None:
            return True
        for member in self.members.values():
            if member.on_joined is not None:
                self.leader = member.member_id
                return True
        return False

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        if self.members:
            self.protocol = self.select_protocol()
            self.topics = self._subscribed()
            self.move_to(State.COMPLETING, now_ms)
        else:
            self.protocol = self.leader = None
            self.topics = None
            self.move_to(State.EMPTY, now_ms)

    def _subscribed(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        found: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.protocols.get(self.protocol or "", b""))
            if topics is None:
                return None
            found.update(topics)
        return frozenset(found)

    # What is said of it.

    def joined(self, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
        """The answer to a member of this generation; its leader learns of all."""
        is_leader = member.member_id == self.leader
        everybody = [
            JoinGroupResponseMember(each.member_id, each.instance_id, each.protocols.get(self.protocol or "", b""))
            for each in (self.members.values() if is_leader else ())
        ]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            leader=self.leader or "",
            skip_assignment=skip_assignment and is_leader,
            member_id=member.member_id,
            members=everybody,
        )

    def synced(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            protocol_type=self.protocol_type, protocol_name=self.protocol, assignment=member.assignment
        )

    def stored(self, assignments: dict[str, bytes]) -> GroupStored:
        """This generation as it is kept."""
        members = tuple(m.stored(self.protocol, assignments.get(m.member_id, b"")) for m in self.members.values())
        return GroupStored(
            self.group_id, self.protocol_type, self.generation, self.protocol, self.leader, members, self.since_ms
        )

    @property
    def assignments(self) -> dict[str, bytes]:
        return {member.member_id: member.assignment for member in self.members.values()}


def answer_join(member: Member, response: JoinGroupResponse) -> bool:
    """Answer a member that waits to join; False if it does not wait."""
    waiting, member.on_joined = member.on_joined, None
    if waiting is not None:
        waiting(response)
    return waiting is not None


def answer_sync(member: Member, response: SyncGroupResponse) -> bool:
    """Answer a member that waits for its assignment; False if it does not wait."""
    waiting, member.on_synced = member.on_synced, None
    if waiting is not None:
        waiting(response)
    return waiting is not None


def restored_group(group_id: str, stored: GroupStored | None, tally: Tally, now_ms: int) -> Group:
    """A group as it is durable: with members it is stable, and they have to be heard of again."""
    group = Group(group_id, tally, now_ms)
    if stored is None:
        return group
    group.protocol_type = stored.protocol_type
    group.generation = stored.generation
    for member in stored.members:
        group.add(restored_member(member, stored.protocol))
    group.protocol, group.leader = stored.protocol, stored.leader
    group.move_to(State.STABLE if group.members else State.EMPTY, stored.since_ms)
    group.topics = group._subscribed() if group.members else None
    return group
