"""All groups of the newer protocol: one write at a time for each, and nothing is told before it is durable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from penstock.kafka.wire.messages.join_group import JoinGroupResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.queue.core.catalog import Catalog
from penstock.queue.core.deadlines import Alarm, Alarms
from penstock.queue.groups.changes import (
    Change,
    ConsumerChange,
    ConsumerEpoch,
    ConsumerMember,
    ConsumerTarget,
    GroupStored,
)
from penstock.queue.groups.classic.join import Joiner
from penstock.queue.groups.classic.member import OnJoined, OnSynced
from penstock.queue.groups.consumer import classic_bridge as classic_side
from penstock.queue.groups.consumer.group import LEAVING, ConsumerGroup
from penstock.queue.groups.consumer.group_writes import ClassicGroups
from penstock.queue.groups.consumer.heartbeat import Beat, Refusal, beat, fence
from penstock.queue.groups.consumer.migration import plan_downgrade
from penstock.queue.groups.consumer.pattern import Patterns
from penstock.queue.groups.table import GroupJournal

OnBeat = Callable[[ConsumerGroupHeartbeatResponse], None]
Told = Callable[[ErrorCode], None]
Work = Callable[[list[Change], int], Told]  # changes the live group, says so in changes; is told how that ended


class Consumers:
    """Live groups by name. What of them is durable stands in `table.consumers`."""

    def __init__(
        self,
        journal: GroupJournal,
        config: BrokerConfig,
        catalog: Catalog,
        alarms: Alarms,
        new_id: Callable[[], UUID],
        classic: ClassicGroups,
        now_ms: int,
    ) -> None:
        self.classic = classic
        self.journal = journal
        self.table = journal.table.consumers
        self.config = config
        self.catalog = catalog
        self.alarms = alarms
        self.new_id = new_id
        self.patterns = Patterns()
        self.groups: dict[str, ConsumerGroup] = {}
        self._waiting: dict[str, deque[Work]] = {}
        self._busy: dict[str, None] = {}
        for group_id in list(self.table.groups):
            self.restore(group_id, now_ms)

    def restore(self, group_id: str, now_ms: int) -> None:
        """A group as it is durable; its members have to be heard of again."""
        before = self.groups.pop(group_id, None)
        if before is not None:
            self._silence(before)
        stored = self.table.groups.get(group_id)
        if stored is None:
            self.classic.restore(group_id, now_ms)
            return
        group = self.groups[group_id] = ConsumerGroup(group_id, now_ms)
        group.put_epoch(stored.epoch)
        if stored.target is not None:
            group.put_target(stored.target)
        for member in stored.members.values():
            group.put_member(member)
            self.listen_for(group, member.member_id, now_ms)
            self.watch_revocation(group, member.member_id, now_ms)

    def _silence(self, group: ConsumerGroup) -> None:
        for alarm in (*group.sessions.values(), *group.revocations.values()):
            self.alarms.cancel(alarm)

    def take_over(self, changes: list[ConsumerChange], now_ms: int) -> ConsumerGroup:
        """A classic group goes on as one of the newer protocol."""
        group = ConsumerGroup(changes[0].group_id, now_ms)
        for change in changes:
            match change:
                case ConsumerEpoch():
                    group.put_epoch(change)
                case ConsumerTarget():
                    group.put_target(change)
                case ConsumerMember():
                    group.put_member(change)
                    self.listen_for(group, change.member_id, now_ms)
        self.groups[group.group_id] = group
        return group

    def is_idle(self, group: ConsumerGroup) -> bool:
        """Whether it has no members, and none on their way."""
        return not group.members and group.group_id not in self._busy and group.group_id not in self._waiting

    # One after the other.

    def heartbeat(self, request: Beat, reply: OnBeat, now_ms: int) -> None:
        """A member says what it has; answered when what it is told is durable."""

        def work(changes: list[Change], then_ms: int) -> Told:
            after: Told = _nothing
            try:
                response = beat(self, request, changes, then_ms)
                if request.epoch == LEAVING:
                    after = self.downgrade(self.groups[request.group_id], changes, then_ms)
            except Refusal as refusal:
                response = ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.why)

            def told(code: ErrorCode) -> None:
                after(code)
                reply(ConsumerGroupHeartbeatResponse(error_code=code) if code else response)

            return told

        self.submit(request.group_id, work, now_ms)

    def join_classic(self, group_id: str, joiner: Joiner, reply: OnJoined, new_id: UUID, now_ms: int) -> None:
        """A member of the classic protocol joins a group of the newer one."""

        def work(changes: list[Change], then_ms: int) -> Told:
            group = self.groups.get(group_id)
            if group is None:
                again = ErrorCode.COORDINATOR_NOT_AVAILABLE
                return lambda _: reply(JoinGroupResponse(error_code=again, member_id=joiner.member_id))
            response = classic_side.join(self, group, joiner, new_id, changes, then_ms)
            return lambda code: reply(JoinGroupResponse(error_code=code) if code else response)

        self.submit(group_id, work, now_ms)

    def sync_classic(self, request: SyncGroupRequest, reply: OnSynced, now_ms: int) -> None:
        """It asks for what it has; told when that is durable."""

        def work(_: list[Change], then_ms: int) -> Told:
            group = self.groups.get(request.group_id)
            said = (request.member_id, request.group_instance_id, request.generation_id)
            fault = ErrorCode.UNKNOWN_MEMBER_ID if group is None else classic_side.fault_of(group, *said)
            if fault or group is None:
                return lambda _: reply(SyncGroupResponse(error_code=fault))
            response = classic_side.sync(self, group, request.member_id, then_ms)
            return lambda code: reply(SyncGroupResponse(error_code=code) if code else response)

        self.submit(request.group_id, work, now_ms)

    def leave_classic(
        self,
        group_id: str,
        leavers: list[tuple[str, str | None]],
        reply: Callable[[list[ErrorCode]], None],
        now_ms: int,
    ) -> None:
        """Members of the classic protocol go."""

        def work(changes: list[Change], then_ms: int) -> Told:
            group = self.groups.get(group_id)
            if group is None:
                return lambda _: reply([ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers))
            codes = classic_side.leave(self, group, leavers, changes, then_ms)
            after = self.downgrade(group, changes, then_ms)

            def told(code: ErrorCode) -> None:
                after(code)
                reply([each or code for each in codes])

            return told

        self.submit(group_id, work, now_ms)

    def downgrade(self, group: ConsumerGroup, changes: list[Change], now_ms: int) -> Told:
        """When all who are left speak the classic protocol, so does the group, once that is durable."""
        stored = plan_downgrade(group, self.catalog, now_ms) if changes else None
        if stored is None:
            return _nothing
        changes.append(stored)

        def told(code: ErrorCode) -> None:
            if not code and self.groups.pop(group.group_id, None) is not None:
                self._silence(group)
                self.classic.on_downgraded(group.group_id, now_ms)

        return told

    def submit(self, group_id: str, work: Work, now_ms: int) -> None:
        """Do this when nothing of the group is on its way to the disk."""
        self._waiting.setdefault(group_id, deque()).append(work)
        self._run(group_id, now_ms)

    def _run(self, group_id: str, now_ms: int) -> None:
        if group_id in self._busy:
            return
        changes: list[Change] = []
        ends: list[Told] = []
        waiting = self._waiting.pop(group_id, deque())
        while waiting:
            ends.append(waiting.popleft()(changes, now_ms))
            if changes and isinstance(changes[-1], GroupStored):
                break  # from here on it is another kind of group
        if waiting:
            self._waiting[group_id] = waiting
        if not changes:
            for told in ends:
                told(ErrorCode.NONE)
            return
        self._busy[group_id] = None

        def finish(code: ErrorCode) -> None:
            del self._busy[group_id]
            if code:
                self.restore(group_id, now_ms)
            for told in ends:
                told(code)
            self._run(group_id, now_ms)

        self.journal.write(changes, finish, now_ms)

    # Time.

    def listen_for(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """Expect to hear of a member within the session timeout."""
        alarm = group.sessions.get(member_id)
        if alarm is None:
            alarm = group.sessions[member_id] = Alarm(lambda then_ms: self.fence(group, member_id, then_ms))
        member = group.members[member_id]
        own_ms = None if member.classic is None else member.classic.session_timeout_ms
        self.alarms.set(alarm, now_ms + (self.config.consumer_session_ms if own_ms is None else own_ms))

    def watch_revocation(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """A member that has to give partitions back has its rebalance timeout for that."""
        member, alarm = group.members[member_id], group.revocations.get(member_id)
        if not member.revoking:
            if alarm is not None:
                self.alarms.cancel(group.revocations.pop(member_id))
        elif alarm is None:
            alarm = group.revocations[member_id] = Alarm(lambda then_ms: self.fence(group, member_id, then_ms))
            self.alarms.set(alarm, now_ms + member.rebalance_timeout_ms)

    def expect_return(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """A classic member was sent to join again, and has its rebalance timeout for that."""
        if member_id not in group.revocations:
            alarm = group.revocations[member_id] = Alarm(lambda then_ms: self.fence(group, member_id, then_ms))
            self.alarms.set(alarm, now_ms + group.members[member_id].rebalance_timeout_ms)

    def fence(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """A member was silent, or kept what it had to give back: the others go on without it."""

        def work(changes: list[Change], then_ms: int) -> Told:
            if self.groups.get(group.group_id) is not group or member_id not in group.members:
                return _nothing
            fence(self, group, member_id, changes, then_ms)
            return self.downgrade(group, changes, then_ms)

        self.submit(group.group_id, work, now_ms)

    # Positions.

    def refuse_commit(self, group: ConsumerGroup, member_id: str, epoch: int, *, knows_epochs: bool) -> ErrorCode:
        """Why positions of this group are not taken, or NONE."""
        if epoch < 0 and not group.members:
            return ErrorCode.NONE
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member.classic is not None:
            return ErrorCode.NONE if epoch == member.epoch else ErrorCode.ILLEGAL_GENERATION
        if not knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH


def _nothing(_: ErrorCode) -> None:
    """Nobody waits for how it ends."""
