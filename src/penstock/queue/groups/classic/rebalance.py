"""From one generation of a classic group to the next: wait for members, choose, hand out, and who is left behind."""

from __future__ import annotations

from typing import Protocol

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.sync_group import SyncGroupResponse
from penstock.queue.core.deadlines import Alarms
from penstock.queue.groups.classic.group import Group, State, answer_join, answer_sync
from penstock.queue.groups.classic.member import Member
from penstock.queue.groups.table import GroupJournal


class GroupHost(Protocol):
    """What a group needs of the coordinator."""

    config: BrokerConfig
    alarms: Alarms
    journal: GroupJournal

    def is_current(self, group: Group) -> bool:
        """Whether it is still the group of its name."""


def listen_for(host: GroupHost, group: Group, member: Member, now_ms: int, timeout_ms: int | None = None) -> None:
    """Expect to hear of a member within its session timeout."""
    member.alarm.ring = lambda then_ms: on_silence(host, group, member, then_ms)
    host.alarms.set(member.alarm, now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms))


def on_silence(host: GroupHost, group: Group, member: Member, now_ms: int) -> None:
    """A member was not heard of in time: the others go on without it."""
    if group.members.get(member.member_id) is member and not member.is_excused:
        group.remove(member.member_id)
        go_on_without(host, group, now_ms)


def go_on_without(host: GroupHost, group: Group, now_ms: int) -> None:
    """Somebody is gone: begin a rebalance, or end the one that waited for it."""
    if group.state in (State.STABLE, State.COMPLETING):
        prepare(host, group, now_ms)
    else:
        complete_if_all_joined(host, group, now_ms)


def prepare(host: GroupHost, group: Group, now_ms: int) -> None:
    """Begin a rebalance: everybody has to join again."""
    if group.state is State.COMPLETING:
        reset_syncs(host, group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.unsynced.clear()
    host.alarms.cancel(group.sync_alarm)
    group.is_forming = group.state is State.EMPTY
    group.move_to(State.PREPARING, now_ms)
    if group.is_forming:
        _wait_for_newcomers(host, group, now_ms + group.rebalance_timeout_ms, now_ms)
    elif group.has_all_joined:
        complete_join(host, group, now_ms)
    else:
        _wait_for_joins(host, group, now_ms)


def _wait_for_joins(host: GroupHost, group: Group, now_ms: int) -> None:
    group.join_alarm.ring = lambda then_ms: complete_join(host, group, then_ms)
    host.alarms.set(group.join_alarm, now_ms + group.rebalance_timeout_ms)


def _wait_for_newcomers(host: GroupHost, group: Group, until_ms: int, now_ms: int) -> None:
    """A group that forms waits a little, and again while members still arrive: a crowd is one rebalance."""
    group.has_newcomer = False

    def ring(then_ms: int) -> None:
        if group.has_newcomer and then_ms < until_ms:
            _wait_for_newcomers(host, group, until_ms, then_ms)
        else:
            complete_join(host, group, then_ms)

    group.join_alarm.ring = ring
    host.alarms.set(group.join_alarm, min(now_ms + host.config.group_initial_delay_ms, until_ms))


def complete_if_all_joined(host: GroupHost, group: Group, now_ms: int) -> None:
    if group.state is State.PREPARING and not group.is_forming and group.has_all_joined:
        complete_join(host, group, now_ms)


def complete_join(host: GroupHost, group: Group, now_ms: int) -> None:
    """The waiting is over: who has joined is in the next generation, static members stay anyway."""
    host.alarms.cancel(group.join_alarm)
    if group.state is not State.PREPARING:
        return
    for member in [m for m in group.members.values() if m.on_joined is None and m.instance_id is None]:
        group.remove(member.member_id)
    if group.members and not group.elect_joined_leader():
        _wait_for_joins(host, group, now_ms)
        return
    group.is_forming = False
    group.begin_generation(now_ms)
    if not group.members:
        # If this fails, what is durable still has members: the next start misses them, and drops them then.
        host.journal.write([group.stored({})], lambda _: None, now_ms)
        return
    for member in list(group.members.values()):
        member.is_new = False
        group.unsynced[member.member_id] = None
        listen_for(host, group, member, now_ms)
        answer_join(member, group.joined(member))
    generation = group.generation
    group.sync_alarm.ring = lambda then_ms: _on_unsynced(host, group, generation, then_ms)
    host.alarms.set(group.sync_alarm, now_ms + group.rebalance_timeout_ms)


def _on_unsynced(host: GroupHost, group: Group, generation: int, now_ms: int) -> None:
    """Members that joined and never asked for their assignment are not there."""
    if generation == group.generation and group.state in (State.COMPLETING, State.STABLE) and group.unsynced:
        for member_id in list(group.unsynced):
            group.remove(member_id)
        prepare(host, group, now_ms)


def hand_out(host: GroupHost, group: Group, assignments: dict[str, bytes], now_ms: int) -> None:
    """The leader has decided: keep it, then tell everybody."""
    generation = group.generation

    def finish(code: ErrorCode) -> None:
        if not host.is_current(group) or group.state is not State.COMPLETING or group.generation != generation:
            return
        if code:
            reset_syncs(host, group, code, now_ms)
            prepare(host, group, now_ms)
            return
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.move_to(State.STABLE, now_ms)
        for member in list(group.members.values()):
            if answer_sync(member, group.synced(member)):
                listen_for(host, group, member, now_ms)

    host.journal.write([group.stored(assignments)], finish, now_ms)


def reset_syncs(host: GroupHost, group: Group, code: ErrorCode, now_ms: int) -> None:
    """Nobody gets an assignment in this generation."""
    for member in group.members.values():
        member.assignment = b""
        if answer_sync(member, SyncGroupResponse(error_code=code)):
            listen_for(host, group, member, now_ms)
