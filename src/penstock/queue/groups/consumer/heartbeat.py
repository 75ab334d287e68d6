"""What a heartbeat of the newer protocol does: who it is, what it wants, what everybody shall have, what it gets."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple
from uuid import UUID

import msgspec

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.queue.groups.changes import (
    Change,
    ConsumerEpoch,
    ConsumerMember,
    ConsumerMemberGone,
    ConsumerTarget,
    Phase,
)
from penstock.queue.groups.consumer.assignors import ASSIGNORS, DEFAULT_ASSIGNOR, Wish
from penstock.queue.groups.consumer.group import LEAVING, RETURNING, ConsumerGroup
from penstock.queue.groups.consumer.group_writes import GroupWrites
from penstock.queue.groups.consumer.partitions import Parts, packed, unpacked
from penstock.queue.groups.consumer.reconcile import plan_next
from penstock.queue.groups.consumer.regex import PatternError


class Beat(NamedTuple):
    """A heartbeat; None where the member says that nothing has changed."""

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int | None
    topics: tuple[str, ...] | None
    pattern: str | None
    assignor: str | None
    owned: Parts | None
    client_id: str
    client_host: str


class Refusal(Exception):
    """The member is told this, and nothing changes."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


def beat(host: GroupWrites, request: Beat, changes: list[Change], now_ms: int) -> ConsumerGroupHeartbeatResponse:
    """Take in a heartbeat; `changes` takes what has to be durable before the answer is given."""
    group = host.groups.get(request.group_id)
    if request.epoch in (LEAVING, RETURNING):
        return _leave(host, group, request, changes, now_ms)
    if group is None:
        if request.epoch != 0:
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        if host.classic.has_classic(request.group_id):
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The group has just become a classic one: ask again.")
        group = ConsumerGroup(request.group_id, now_ms)
    before = _who(host, group, request)
    member = _updated(before, request)
    _check(host, group, member, request)
    host.groups[group.group_id] = group
    after = proceed(host, group, before, member, request.owned, changes, now_ms)
    is_full = request.epoch == 0 or (
        request.rebalance_timeout_ms is not None and _says_topics(request) and request.owned is not None
    )
    return ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=host.config.consumer_heartbeat_ms,
        assignment=_assignment(after) if is_full or after.assigned != before.assigned else None,
    )


def proceed(
    host: GroupWrites,
    group: ConsumerGroup,
    before: ConsumerMember,
    member: ConsumerMember,
    owned: Parts | None,
    changes: list[Change],
    now_ms: int,
) -> ConsumerMember:
    """A member said something new: reckon what everybody shall have, and let it take its next step."""
    wishes_changed = before.epoch < 0 or _wishes(before) != _wishes(member)
    if member.member_id not in group.members:
        _take_over(group, member, changes)
    group.put_member(member)
    _renew(host, group, wishes_changed, changes, now_ms)
    after = plan_next(group, member, owned)
    if after != before:
        group.put_member(after)
        changes.append(after)
    host.listen_for(group, after.member_id, now_ms)
    host.watch_revocation(group, after.member_id, now_ms)
    return after


def newcomer(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    """Somebody of whom nothing is known yet; epoch -1 says so."""
    return ConsumerMember(
        group.group_id, member_id, None, None, "", "", 0, (), None, None, -1, -1, Phase.STABLE, (), ()
    )


def _says_topics(request: Beat) -> bool:
    return request.topics is not None or request.pattern is not None


def _assignment(member: ConsumerMember) -> Assignment:
    return Assignment([TopicPartitions(topic_id, list(indexes)) for topic_id, indexes in member.assigned])


def _wishes(member: ConsumerMember) -> object:
    return member.topics, member.pattern, member.assignor, member.rack_id, member.instance_id


# Who it is.


def _who(host: GroupWrites, group: ConsumerGroup, request: Beat) -> ConsumerMember:
    """The member as it was before; a newcomer has epoch -1, one that returns to its static place the one it left."""
    if request.instance_id is not None:
        known_id = group.statics.get(request.instance_id)
        known = group.members.get(known_id or "")
        if known is not None and request.epoch == 0 and known_id != request.member_id:
            if known.epoch != RETURNING:
                raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, f"{request.instance_id} is in use by {known_id}.")
            return msgspec.structs.replace(known, epoch=0, member_id=request.member_id or str(host.new_id()))
        if known is None and request.epoch > 0:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
        if known is not None and known_id != request.member_id:
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, f"{request.instance_id} is in use by {known_id}.")
    member = group.members.get(request.member_id)
    if member is not None:
        _check_epoch(member, request)
        return member
    if request.epoch > 0:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of the group.")
    if len(group.members) >= host.config.group_members_max:
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "The group has as many members as it may have.")
    return newcomer(group, request.member_id or str(host.new_id()))


def _check_epoch(member: ConsumerMember, request: Beat) -> None:
    if request.epoch in (0, member.epoch):
        return
    owned = request.owned if request.owned is not None else {None: None}
    assigned = unpacked(member.assigned)
    # The answer with the newer epoch got lost, and it has taken nothing that it was told of there.
    if request.epoch == member.previous_epoch < member.epoch and all(part in assigned for part in owned):
        return
    raise Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The member has epoch {request.epoch}, not {member.epoch}; it must give up its partitions and join again.",
    )


def _updated(before: ConsumerMember, request: Beat) -> ConsumerMember:
    """The member with all that it has said now; who begins anew at epoch 0 keeps what it had."""
    says = _says_topics(request)
    return msgspec.structs.replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms if request.rebalance_timeout_ms is None else request.rebalance_timeout_ms
        ),
        topics=before.topics if request.topics is None else tuple(sorted(set(request.topics))),
        pattern=(request.pattern or None)
        if request.pattern is not None or (says and request.epoch == 0)
        else before.pattern,
        assignor=before.assignor if request.assignor is None else request.assignor,
        epoch=max(before.epoch, 0),
        classic=None,
    )


def _check(host: GroupWrites, group: ConsumerGroup, member: ConsumerMember, request: Beat) -> None:
    if member.assignor is not None and member.assignor not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR, f"There is no assignor {member.assignor[:100]}; there are {known}."
        )
    if request.pattern:
        try:
            host.patterns.matching(request.pattern, host.catalog.topics, host.catalog.version)
        except PatternError as wrong:
            raise Refusal(ErrorCode.INVALID_REGULAR_EXPRESSION, f"This pattern is not taken: {wrong}.") from None
    size = sum(map(len, member.topics)) + len(member.pattern or "")
    if host.table.bytes + size > host.config.group_bytes_max:
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "Groups take all the memory they may take (group_bytes_max).")


def _take_over(group: ConsumerGroup, member: ConsumerMember, changes: list[Change]) -> None:
    """A static member that returns under a new id has what the old one had, and shall have what that should."""
    old_id = group.statics.get(member.instance_id or "")
    if old_id is None:
        return
    target = group.targets.get(old_id, ())
    group.drop_member(old_id)
    changes.append(ConsumerMemberGone(group.group_id, old_id))
    targets = tuple({**group.targets, member.member_id: target}.items())
    renamed = ConsumerTarget(group.group_id, group.target_epoch, group.assignor, targets)
    group.put_target(renamed)
    changes.append(renamed)


# What everybody shall have.


def _renew(host: GroupWrites, group: ConsumerGroup, wishes_changed: bool, changes: list[Change], now_ms: int) -> None:
    """A new epoch if members want something else than before, or topics have changed; then a new target."""
    if wishes_changed or group.seen_version != host.catalog.version:
        group.seen_version = host.catalog.version
        topics = _subscribed(host, group)
        if wishes_changed or topics != group.topics:
            _begin_epoch(group, topics, changes, now_ms)
    if group.epoch > group.target_epoch:
        target = _assign(host, group)
        group.put_target(target)
        changes.append(target)


def _begin_epoch(
    group: ConsumerGroup, topics: tuple[tuple[UUID, int], ...], changes: list[Change], now_ms: int
) -> None:
    epoch = ConsumerEpoch(group.group_id, group.epoch + 1, topics, now_ms)
    group.put_epoch(epoch)
    changes.append(epoch)


def topics_of(host: GroupWrites, member: ConsumerMember) -> tuple[UUID, ...]:
    """The topics that a member wants and that are there."""
    names = dict.fromkeys(member.topics)
    if member.pattern:
        with suppress(PatternError):  # it was taken when there were fewer topics
            names |= dict.fromkeys(host.patterns.matching(member.pattern, host.catalog.topics, host.catalog.version))
    topics = host.catalog.topics
    return tuple(topics[name].topic_id for name in names if name in topics)


def _subscribed(host: GroupWrites, group: ConsumerGroup) -> tuple[tuple[UUID, int], ...]:
    wanted = {topic_id for member in group.members.values() for topic_id in topics_of(host, member)}
    found = []
    for topic_id in sorted(wanted, key=lambda each: each.bytes):
        topic = host.catalog.by_id(topic_id)
        if topic is not None:
            found.append((topic_id, topic.partitions))
    return tuple(found)


def _assign(host: GroupWrites, group: ConsumerGroup) -> ConsumerTarget:
    votes: dict[str, int] = {}
    for member in group.members.values():
        if member.assignor is not None:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    name = max(votes, key=lambda each: (votes[each], each)) if votes else DEFAULT_ASSIGNOR
    wishes = [
        Wish(member.member_id, topics_of(host, member), group.target(member.member_id))
        for member in group.members.values()
    ]
    given = ASSIGNORS[name](wishes, dict(group.topics))
    targets = tuple((member_id, packed(parts)) for member_id, parts in given.items())
    return ConsumerTarget(group.group_id, group.epoch, name, targets)


# How it ends.


def fence(host: GroupWrites, group: ConsumerGroup, member_id: str, changes: list[Change], now_ms: int) -> None:
    """A member is gone: its partitions are free, and what everybody shall have is reckoned anew."""
    group.drop_member(member_id)
    changes.append(ConsumerMemberGone(group.group_id, member_id))
    _begin_epoch(group, _subscribed(host, group), changes, now_ms)


def _leave(
    host: GroupWrites, group: ConsumerGroup | None, request: Beat, changes: list[Change], now_ms: int
) -> ConsumerGroupHeartbeatResponse:
    if group is None:
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    member = group.members.get(request.member_id)
    if request.instance_id is not None and group.statics.get(request.instance_id) != request.member_id:
        known = request.instance_id in group.statics
        code = ErrorCode.FENCED_INSTANCE_ID if known else ErrorCode.UNKNOWN_MEMBER_ID
        raise Refusal(code, f"{request.member_id} is not the member that {request.instance_id} stands for.")
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of the group.")
    if request.epoch == RETURNING:
        # Its partitions stay its own until it is back, or missed for too long.
        away = msgspec.structs.replace(member, epoch=RETURNING, revoking=(), phase=Phase.STABLE)
        group.put_member(away)
        changes.append(away)
        host.watch_revocation(group, member.member_id, now_ms)
    else:
        fence(host, group, request.member_id, changes, now_ms)
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.epoch)
