"""JoinGroup for a classic group: who may come in, under which id, and whether that begins a rebalance."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.join_group import JoinGroupResponse
from penstock.queue.core.deadlines import Alarm
from penstock.queue.groups.classic.group import Group, State
from penstock.queue.groups.classic.member import Member, OnJoined
from penstock.queue.groups.classic.rebalance import (
    GroupHost,
    complete_if_all_joined,
    go_on_without,
    listen_for,
    prepare,
)

NEWCOMER_TIMEOUT_MS = 300_000  # as Kafka: a newcomer that waits longer for its first generation has gone away


class Joiner(NamedTuple):
    """Who wants in."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    needs_known_id: bool  # KIP-394: it asks again with the id that it is given
    can_skip_assignment: bool  # a leader that came back may be told to leave all as it is

    @property
    def bytes(self) -> int:
        return sum(map(len, self.protocols.values()))


def join(host: GroupHost, group: Group, joiner: Joiner, reply: OnJoined, new_id: UUID, now_ms: int) -> None:
    """Take in a newcomer, or let a member join the next generation."""
    if not _has_room(host, group, joiner.member_id):
        group.take_id(joiner.member_id)
        group.remove(joiner.member_id)
        reply(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
    elif not group.understands(joiner.protocol_type, list(joiner.protocols)):
        reply(JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=joiner.member_id))
    elif not joiner.member_id:
        _join_newcomer(host, group, joiner, reply, f"{joiner.instance_id or joiner.client_id}-{new_id}", now_ms)
    elif joiner.instance_id is None and group.take_id(joiner.member_id):
        _add(host, group, joiner, joiner.member_id, reply, now_ms)
    elif fault := group.fault_of(joiner.member_id, joiner.instance_id):
        reply(JoinGroupResponse(error_code=fault, member_id=joiner.member_id))
    else:
        _join_again(host, group, joiner, reply, now_ms)


def _has_room(host: GroupHost, group: Group, member_id: str) -> bool:
    if group.state is State.PREPARING:
        member = group.members.get(member_id)
        joined = sum(each.on_joined is not None for each in group.members.values())
        return (member is not None and member.on_joined is not None) or joined < host.config.group_members_max
    if member_id in group.members or member_id in group.pending:
        return True  # an id that was given out has its place
    return len(group.members) + len(group.pending) < host.config.group_members_max


def _join_newcomer(host: GroupHost, group: Group, joiner: Joiner, reply: OnJoined, new_id: str, now_ms: int) -> None:
    if joiner.instance_id is not None:
        known = group.statics.get(joiner.instance_id)
        if known is None:
            _add(host, group, joiner, new_id, reply, now_ms)
        else:
            _return_static(host, group, joiner, known, new_id, reply, now_ms)
    elif joiner.needs_known_id:
        given = Alarm(lambda then_ms: _on_id_unused(host, group, new_id, then_ms))
        group.give_id(new_id, given)
        host.alarms.set(given, now_ms + joiner.session_timeout_ms)
        reply(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=new_id))
    else:
        _add(host, group, joiner, new_id, reply, now_ms)


def _on_id_unused(host: GroupHost, group: Group, member_id: str, now_ms: int) -> None:
    if group.take_id(member_id):
        complete_if_all_joined(host, group, now_ms)


def _add(host: GroupHost, group: Group, joiner: Joiner, member_id: str, reply: OnJoined, now_ms: int) -> None:
    member = Member(member_id, joiner.instance_id, joiner.client_id, joiner.client_host)
    if not group.members:
        group.protocol_type = joiner.protocol_type
    group.has_newcomer = True
    group.add(member)
    _update(group, member, joiner, reply)
    listen_for(host, group, member, now_ms, NEWCOMER_TIMEOUT_MS)
    _rebalance(host, group, now_ms)


def _update(group: Group, member: Member, joiner: Joiner, reply: OnJoined) -> None:
    group.set_protocols(member, joiner.protocols)
    member.session_timeout_ms = joiner.session_timeout_ms
    member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
    before, member.on_joined = member.on_joined, reply
    if before is not None:  # it asked twice; whoever still listens there may ask once more
        before(JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id))


def _rebalance(host: GroupHost, group: Group, now_ms: int) -> None:
    if group.state is State.PREPARING:
        complete_if_all_joined(host, group, now_ms)
    else:
        prepare(host, group, now_ms)


def _join_again(host: GroupHost, group: Group, joiner: Joiner, reply: OnJoined, now_ms: int) -> None:
    member = group.members[joiner.member_id]
    is_same = list(member.protocols.items()) == list(joiner.protocols.items())
    is_leader = member.member_id == group.leader
    if is_same and (group.state is State.COMPLETING or (group.state is State.STABLE and not is_leader)):
        # It did not get the answer, or nothing has changed for it: this generation goes on.
        answer = group.joined(member)
        if group.state is State.STABLE:
            answer.members = []
        reply(answer)
    else:
        _update(group, member, joiner, reply)
        _rebalance(host, group, now_ms)


def _return_static(
    host: GroupHost, group: Group, joiner: Joiner, old_id: str, new_id: str, reply: OnJoined, now_ms: int
) -> None:
    """KIP-345: a static member that comes back takes its place, without a rebalance if it can."""
    old_leader = group.leader
    member = group.replace(old_id, new_id)
    member.client_id, member.client_host = joiner.client_id, joiner.client_host
    _update(group, member, joiner, reply)
    listen_for(host, group, member, now_ms)
    if group.state is State.STABLE and group.select_protocol() == group.protocol:
        _keep_generation(host, group, member, joiner, old_leader, now_ms)
    elif group.state is State.PREPARING:
        complete_if_all_joined(host, group, now_ms)
    else:
        prepare(host, group, now_ms)


def _keep_generation(
    host: GroupHost, group: Group, member: Member, joiner: Joiner, old_leader: str | None, now_ms: int
) -> None:
    reply, member.on_joined = member.on_joined, None
    generation = group.generation

    def finish(code: ErrorCode) -> None:
        if reply is None:
            return
        is_there = host.is_current(group) and group.members.get(member.member_id) is member
        if not is_there or group.generation != generation:
            code = code or ErrorCode.REBALANCE_IN_PROGRESS
        if code:
            reply(JoinGroupResponse(error_code=code))
            if is_there:
                # What is durable knows it by its old id only: it must not go on under the new one.
                group.remove(member.member_id)
                go_on_without(host, group, now_ms)
            return
        answer = group.joined(member, skip_assignment=True)
        if not joiner.can_skip_assignment:
            # It would assign anew what nobody else asks for: it is told that another leads.
            answer.leader, answer.skip_assignment, answer.members = old_leader or "", False, []
        reply(answer)

    host.journal.write([group.stored(group.assignments)], finish, now_ms)
