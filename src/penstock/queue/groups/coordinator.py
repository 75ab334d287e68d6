"""All groups of this node: found, made, restored and ended here; the rules are in the modules beside."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.config.setting import clipped
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from penstock.kafka.wire.messages.join_group import JoinGroupResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupResponse
from penstock.queue.core.catalog import Catalog
from penstock.queue.core.deadlines import Alarm, Alarms
from penstock.queue.core.notes import Notes
from penstock.queue.core.table_log import Finish
from penstock.queue.groups.changes import (
    Change,
    GroupGone,
    OffsetsCommitted,
    OffsetsForgotten,
    OffsetsHeld,
    OffsetsReleased,
    Position,
)
from penstock.queue.groups.classic.group import Group, State, Tally, answer_join, answer_sync, restored_group
from penstock.queue.groups.classic.join import Joiner, join
from penstock.queue.groups.classic.member import OnJoined, OnSynced
from penstock.queue.groups.classic.rebalance import go_on_without, hand_out, listen_for, prepare
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.groups import Consumers, OnBeat
from penstock.queue.groups.consumer.heartbeat import Beat
from penstock.queue.groups.consumer.migration import plan_upgrade
from penstock.queue.groups.expiry import plan_forgotten, use_of
from penstock.queue.groups.table import GroupJournal

SWEEP_AT_ONCE = 200  # groups a step: looking through all positions at once would stall every client
SWEEP_PAUSE_MS = 100
TELL_FULL_MS = 60_000  # who is refused comes again at once


class Coordinator:
    """Live groups by name. What of them is durable stands in `journal.table`."""

    def __init__(
        self,
        journal: GroupJournal,
        config: BrokerConfig,
        catalog: Catalog,
        new_id: Callable[[], UUID],
        notes: Notes,
        on_ended: Callable[[str], None],
        now_ms: int,
    ) -> None:
        self.journal = journal
        self.table = journal.table
        self.config = config
        self.alarms = Alarms()
        self._catalog = catalog
        self._new_id = new_id
        self.groups: dict[str, Group] = {}
        self._on_ended = on_ended
        self._notes = notes
        self._tell_full_ms = now_ms
        self.tally = Tally()
        self.consumers = Consumers(journal, config, catalog, self.alarms, new_id, self, now_ms)
        for group_id in {**self.table.groups, **self.table.positions, **self.table.holders}:
            if group_id not in self.consumers.groups:
                self.restore(group_id, now_ms)
        self._sweep_alarm = Alarm(self._sweep)
        self._unswept: list[str] = []
        self.alarms.set(self._sweep_alarm, now_ms + config.offsets_check_ms)

    # Groups.

    def restore(self, group_id: str, now_ms: int) -> None:
        """A group as it is durable."""
        if group_id in self.table.consumers.groups:
            self.consumers.restore(group_id, now_ms)
            return
        if group_id not in self.table and not self.table.is_held(group_id):
            return
        group = self.groups[group_id] = restored_group(group_id, self.table.groups.get(group_id), self.tally, now_ms)
        for member in group.members.values():
            listen_for(self, group, member, now_ms)

    def has_classic(self, group_id: str) -> bool:
        return group_id in self.groups

    def is_current(self, group: Group) -> bool:
        return self.groups.get(group.group_id) is group

    def _make(self, group_id: str, now_ms: int) -> Group | None:
        """The group of this name, made if need be; None if there are too many."""
        group = self.groups.get(group_id)
        if group is None and not self._is_full(group_id, now_ms):
            group = self.groups[group_id] = Group(group_id, self.tally, now_ms)
        return group

    def _is_full(self, group_id: str, now_ms: int) -> bool:
        """Whether there is no room for this group, which is told now and then."""
        if len(self.groups) + len(self.consumers.groups) < self.config.groups_max:
            return False
        if now_ms >= self._tell_full_ms:
            self._tell_full_ms = now_ms + TELL_FULL_MS
            why = "there are too many (groups_max)"
            self._notes.note("warning", "group refused", group=clipped(group_id), reason=why)
        return True

    # The newer protocol.

    def beat(self, request: Beat, reply: OnBeat, now_ms: int) -> None:
        """A heartbeat of the newer protocol; an empty classic group becomes one of it."""
        classic = self.groups.get(request.group_id)
        if classic is not None:
            if request.epoch != 0 or not self._upgrade(classic, now_ms):
                why = f"Group {request.group_id} is not a consumer group."
                reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=why))
                return
        elif (
            request.epoch == 0
            and request.group_id not in self.consumers.groups
            and self._is_full(request.group_id, now_ms)
        ):
            reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
            return
        self.consumers.heartbeat(request, reply, now_ms)

    def _upgrade(self, classic: Group, now_ms: int) -> bool:
        """Let a classic group go on as one of the newer protocol, with its members if it has some."""
        if classic.members:
            changes = plan_upgrade(classic, self._catalog, now_ms)
            if changes is None:
                return False
            for member in classic.members.values():
                answer_join(member, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
                answer_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            self._bury(self.groups.pop(classic.group_id))
            for member_id in list(classic.members):
                classic.remove(member_id)
            group = self.consumers.take_over(changes, now_ms)

            def work(all_changes: list[Change], _: int) -> Finish:
                all_changes += changes
                return lambda _: None

            self.consumers.submit(group.group_id, work, now_ms)
        else:
            self._bury(self.groups.pop(classic.group_id))
        return True

    def on_downgraded(self, group_id: str, now_ms: int) -> None:
        """All who are left speak the classic protocol: they find a leader among them."""
        self.restore(group_id, now_ms)
        prepare(self, self.groups[group_id], now_ms)

    # The classic protocol.

    def join(self, group_id: str, joiner: Joiner, reply: OnJoined, now_ms: int) -> None:
        if not group_id:
            reply(JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=joiner.member_id))
        elif not self.config.group_session_ms_min <= joiner.session_timeout_ms <= self.config.group_session_ms_max:
            reply(JoinGroupResponse(error_code=ErrorCode.INVALID_SESSION_TIMEOUT, member_id=joiner.member_id))
        elif not self._leave_newer(group_id):
            self.consumers.join_classic(group_id, joiner, reply, self._new_id(), now_ms)
        elif joiner.member_id and group_id not in self.groups:
            reply(JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=joiner.member_id))
        elif (
            self.tally.bytes + joiner.bytes > self.config.group_bytes_max
            or (group := self._make(group_id, now_ms)) is None
        ):
            reply(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED, member_id=joiner.member_id))
        else:
            join(self, group, joiner, reply, self._new_id(), now_ms)

    def _leave_newer(self, group_id: str) -> bool:
        """Let a group of the newer protocol that is empty be one of the classic; False if it has members."""
        group = self.consumers.groups.get(group_id)
        if group is not None:
            if not self.consumers.is_idle(group):
                return False
            del self.consumers.groups[group_id]
        return True

    def sync(
        self,
        group: Group,
        member_id: str,
        assignments: dict[str, bytes],
        reply: OnSynced,
        now_ms: int,
    ) -> None:
        """A member of the current generation asks for its assignment; the leader brings all of them."""
        member = group.members[member_id]
        if group.state is State.PREPARING:
            reply(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
            return
        group.unsynced.pop(member_id, None)
        if not group.unsynced:
            self.alarms.cancel(group.sync_alarm)
        if group.state is State.STABLE:
            reply(group.synced(member))
            return
        before, member.on_synced = member.on_synced, reply
        if before is not None:
            before(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        elif member_id == group.leader:
            hand_out(self, group, assignments, now_ms)

    def heartbeat(self, group: Group, member_id: str, now_ms: int) -> ErrorCode:
        """A member of the current generation says that it lives."""
        listen_for(self, group, group.members[member_id], now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else ErrorCode.NONE

    def leave(self, group: Group, leavers: list[tuple[str, str | None]], now_ms: int) -> list[ErrorCode]:
        """Members go, all before the others are asked to join again."""
        codes = [self._leave_one(group, member_id, instance_id) for member_id, instance_id in leavers]
        if ErrorCode.NONE in codes:
            go_on_without(self, group, now_ms)
        return codes

    def _leave_one(self, group: Group, member_id: str, instance_id: str | None) -> ErrorCode:
        if not member_id and instance_id is not None:
            member_id = group.statics.get(instance_id, "")
        elif group.take_id(member_id):
            return ErrorCode.NONE
        code = group.fault_of(member_id, instance_id)
        if not code:
            group.remove(member_id)
        return code

    # Positions.

    def refuse_commit(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        now_ms: int,
        *,
        knows_epochs: bool = True,
    ) -> ErrorCode:
        """Why positions of this group are not taken, or NONE; then the group is there."""
        if (newer := self.consumers.groups.get(group_id)) is not None:
            return self.consumers.refuse_commit(newer, member_id, generation, knows_epochs=knows_epochs)
        if group_id not in self.groups and generation >= 0:
            return ErrorCode.GROUP_ID_NOT_FOUND
        group = self._make(group_id, now_ms)
        if group is None:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        code = group.refuse_commit(member_id, instance_id, generation)
        if not code and member_id in group.members:
            listen_for(self, group, group.members[member_id], now_ms)
        return code

    def refuse_hold(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> ErrorCode:
        """Why positions of this group are not taken into a transaction, or NONE; then the group is there."""
        if (newer := self.consumers.groups.get(group_id)) is not None:
            if generation < 0 and not member_id and instance_id is None:
                return ErrorCode.NONE
            code = self.consumers.refuse_commit(newer, member_id, generation, knows_epochs=True)
            return ErrorCode.ILLEGAL_GENERATION if code is ErrorCode.STALE_MEMBER_EPOCH else code
        if group_id not in self.groups and generation >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        group = self._make(group_id, now_ms)
        if group is None:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if generation < 0 and not member_id and instance_id is None:
            return ErrorCode.NONE  # the producer says nothing of who consumed: before KIP-447 it could not
        code = group.refuse_commit(member_id, instance_id, generation)
        return ErrorCode.NONE if code is ErrorCode.REBALANCE_IN_PROGRESS else code

    def commit(self, group_id: str, positions: list[Position], finish: Finish, now_ms: int) -> None:
        """Keep positions; `finish` is told when they are durable."""
        self._keep(group_id, OffsetsCommitted(group_id, tuple(positions)), finish, now_ms)

    def hold(
        self, group_id: str, producer_id: int, epoch: int, positions: list[Position], finish: Finish, now_ms: int
    ) -> None:
        """Keep positions that become true with a transaction; `finish` is told when they are durable."""
        self._keep(group_id, OffsetsHeld(producer_id, epoch, group_id, tuple(positions)), finish, now_ms)

    def release(self, producer_id: int, epoch: int, is_commit: bool, finish: Finish, now_ms: int) -> None:
        """A transaction has ended: what was held with it is true, or forgotten."""
        self._write([OffsetsReleased(producer_id, epoch, is_commit)], finish, now_ms)

    def _keep(self, group_id: str, change: Change, finish: Finish, now_ms: int) -> None:
        group = self.groups.get(group_id) or self.consumers.groups[group_id]
        group.commits += 1

        def finish_one(code: ErrorCode) -> None:
            group.commits -= 1
            finish(code)

        self._write([change], finish_one, now_ms)

    def forget(self, group_id: str, partitions: list[tuple[UUID, int]], finish: Finish, now_ms: int) -> None:
        self._write([OffsetsForgotten(group_id, tuple(partitions))] if partitions else [], finish, now_ms)

    def _write(self, changes: list[Change], finish: Finish, now_ms: int) -> None:
        if changes:
            self.journal.write(changes, finish, now_ms)
        else:
            finish(ErrorCode.NONE)

    # The end of groups.

    def delete(self, group_ids: list[str], codes: dict[str, ErrorCode], finish: Finish, now_ms: int) -> None:
        """Forget empty groups with their positions; `codes` takes why one cannot go, or NONE."""
        codes.update((group_id, self._refuse_delete(group_id)) for group_id in group_ids)
        gone = [group_id for group_id, code in codes.items() if not code]
        for group_id in gone:
            if group_id in self.groups:
                self._bury(self.groups.pop(group_id))
            else:
                del self.consumers.groups[group_id]

        def finish_all(code: ErrorCode) -> None:
            if code:
                for group_id in gone:
                    if group_id not in self.groups and group_id not in self.consumers.groups:
                        self.restore(group_id, now_ms)
            finish(code)

        self._write([GroupGone(group_id) for group_id in gone], finish_all, now_ms)

    def _refuse_delete(self, group_id: str) -> ErrorCode:
        if (newer := self.consumers.groups.get(group_id)) is not None:
            return ErrorCode.NONE if self.consumers.is_idle(newer) else ErrorCode.NON_EMPTY_GROUP
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NONE if group.state is State.EMPTY else ErrorCode.NON_EMPTY_GROUP

    def _bury(self, group: Group) -> None:
        self._on_ended(group.group_id)
        group.state = State.DEAD
        self.alarms.cancel(group.join_alarm)
        self.alarms.cancel(group.sync_alarm)
        for member_id in list(group.pending):
            group.take_id(member_id)

    def on_topic_deleted(self) -> None:
        """Its positions cannot be asked for any more; they are forgotten with the next step."""
        self.alarms.set(self._sweep_alarm, 0)

    def _sweep(self, now_ms: int) -> None:
        """Look through some groups for positions that nobody needs, and for groups that are nothing any more."""
        if not self._unswept:
            self._unswept = [*self.groups, *self.consumers.groups]
        some, self._unswept = self._unswept[-SWEEP_AT_ONCE:], self._unswept[:-SWEEP_AT_ONCE]
        for group_id in some:
            group = self.groups.get(group_id) or self.consumers.groups.get(group_id)
            if group is not None:
                self._sweep_one(group, now_ms)
        pause_ms = SWEEP_PAUSE_MS if self._unswept else self.config.offsets_check_ms
        self.alarms.set(self._sweep_alarm, now_ms + pause_ms)

    def _sweep_one(self, group: Group | ConsumerGroup, now_ms: int) -> None:
        if group.commits or self.table.is_held(group.group_id):
            return  # what is on its way to the disk is not in the table, and must not be forgotten with it
        positions = self.table.positions.get(group.group_id, {})
        gone = plan_forgotten(use_of(group), positions, self._catalog, now_ms, self.config.offsets_retention_ms)
        is_nothing = not group.pending if isinstance(group, Group) else self.consumers.is_idle(group)
        if len(gone) == len(positions) and use_of(group).is_empty and is_nothing:
            self.delete([group.group_id], {}, lambda _: None, now_ms)
        else:
            self.forget(group.group_id, gone, lambda _: None, now_ms)

    # Time.

    def on_time(self, now_ms: int) -> None:
        for alarm in self.alarms.due(now_ms):
            if alarm.ring is not None:
                alarm.ring(now_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        return self.alarms.next_ms
