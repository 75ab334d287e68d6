"""Members that speak the classic protocol in a group of the newer one: they join, sync and beat as they know it."""

from __future__ import annotations

from uuid import UUID

import msgspec

from penstock.errors import ErrorCode, PeerError
from penstock.kafka.wire.messages.join_group import JoinGroupResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupResponse
from penstock.queue.groups.changes import Change, ClassicSide, ConsumerMember, Phase
from penstock.queue.groups.classic.group import CONSUMER
from penstock.queue.groups.classic.join import Joiner
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.group_writes import GroupWrites
from penstock.queue.groups.consumer.heartbeat import Refusal, fence, newcomer, proceed
from penstock.queue.groups.consumer.migration import classic_assignment
from penstock.queue.groups.consumer.partitions import Parts
from penstock.queue.groups.subscription import decode_subscription


def join(
    host: GroupWrites, group: ConsumerGroup, joiner: Joiner, new_id: UUID, changes: list[Change], now_ms: int
) -> JoinGroupResponse:
    """There is nobody to wait for: the broker has the answer at once."""
    if joiner.protocol_type != CONSUMER or not joiner.protocols:
        return JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=joiner.member_id)
    try:
        said = decode_subscription(next(iter(joiner.protocols.values())))
    except PeerError:
        return JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=joiner.member_id)
    if not joiner.member_id and joiner.instance_id is None and joiner.needs_known_id:
        member_id = f"{joiner.client_id}-{new_id}"
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    try:
        before = _who(host, group, joiner, new_id)
    except Refusal as refusal:
        return JoinGroupResponse(error_code=refusal.code, member_id=joiner.member_id)
    member = msgspec.structs.replace(
        before,
        instance_id=joiner.instance_id,
        rack_id=said.rack_id,
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
        topics=tuple(sorted(set(said.topics))),
        pattern=None,
        assignor=None,
        epoch=max(before.epoch, 0),
        classic=ClassicSide(joiner.session_timeout_ms, tuple(joiner.protocols.items())),
    )
    topics = host.catalog.topics
    owned: Parts = {
        (topics[each.topic].topic_id, index): None
        for each in said.owned_partitions
        if each.topic in topics
        for index in each.partitions
    }
    after = proceed(host, group, before, member, owned, changes, now_ms)
    return JoinGroupResponse(
        generation_id=after.epoch,
        protocol_type=CONSUMER,
        protocol_name=next(iter(joiner.protocols)),
        member_id=after.member_id,
    )


def _who(host: GroupWrites, group: ConsumerGroup, joiner: Joiner, new_id: UUID) -> ConsumerMember:
    known_id = group.statics.get(joiner.instance_id or "")
    if joiner.instance_id is not None and known_id is not None:
        if joiner.member_id not in ("", known_id):
            raise Refusal(ErrorCode.FENCED_INSTANCE_ID, "")
        known = group.members[known_id]
        return known if joiner.member_id else msgspec.structs.replace(known, member_id=f"{joiner.instance_id}-{new_id}")
    member = group.members.get(joiner.member_id)
    if member is not None:
        return member
    if len(group.members) >= host.config.group_members_max:
        raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    return newcomer(group, joiner.member_id or f"{joiner.instance_id or joiner.client_id}-{new_id}")


def fault_of(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Why this is no classic member of that generation, or NONE."""
    if instance_id is not None:
        known = group.statics.get(instance_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if known != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    member = group.members.get(member_id)
    if member is None or member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member.epoch == generation else ErrorCode.ILLEGAL_GENERATION


def sync(host: GroupWrites, group: ConsumerGroup, member_id: str, now_ms: int) -> SyncGroupResponse:
    """A classic member of the right generation asks for what it has."""
    member = group.members[member_id]
    if group.epoch > member.epoch and member.phase is not Phase.REVOKING:
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    host.listen_for(group, member_id, now_ms)
    protocol = member.classic.protocols[0][0] if member.classic is not None else None
    return SyncGroupResponse(
        protocol_type=CONSUMER, protocol_name=protocol, assignment=classic_assignment(member, host.catalog)
    )


def heartbeat(host: GroupWrites, group: ConsumerGroup, member_id: str, now_ms: int) -> ErrorCode:
    """A classic member says that it lives; it is sent to join again when there is something new for it."""
    member = group.members[member_id]
    host.listen_for(group, member_id, now_ms)
    waits_in_vain = member.phase is Phase.WAITING and all(
        group.owners.get(part, member_id) == member_id for part in group.target(member_id)
    )
    if member.epoch < group.epoch or member.phase is Phase.REVOKING or waits_in_vain:
        host.expect_return(group, member_id, now_ms)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    host: GroupWrites,
    group: ConsumerGroup,
    leavers: list[tuple[str, str | None]],
    changes: list[Change],
    now_ms: int,
) -> list[ErrorCode]:
    """Classic members go."""
    codes = []
    for member_id, instance_id in leavers:
        if not member_id and instance_id is not None:
            member_id = group.statics.get(instance_id, "")
        generation = group.members[member_id].epoch if member_id in group.members else -1
        codes.append(code := fault_of(group, member_id, instance_id, generation))
        if not code:
            fence(host, group, member_id, changes, now_ms)
    return codes
