"""A group with members moves from the classic protocol to the newer one, and back, while it runs."""

from __future__ import annotations

from penstock.errors import PeerError
from penstock.queue.core.catalog import Catalog
from penstock.queue.groups.changes import (
    ClassicSide,
    ConsumerChange,
    ConsumerEpoch,
    ConsumerMember,
    ConsumerTarget,
    GroupStored,
    Phase,
    StoredMember,
)
from penstock.queue.groups.classic.group import CONSUMER, Group
from penstock.queue.groups.classic.member import Member
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.partitions import Packed, packed
from penstock.queue.groups.subscription import decode_assignment, decode_subscription, encode_assignment


def plan_upgrade(group: Group, catalog: Catalog, now_ms: int) -> list[ConsumerChange] | None:
    """What makes a classic group one of the newer protocol, its members as they stand; None if they cannot be read."""
    if group.protocol_type != CONSUMER:
        return None
    try:
        members = [_upgraded(group, member, catalog) for member in group.members.values()]
    except PeerError:
        return None
    epoch = group.generation
    topics = {topic.topic_id: topic.partitions for topic in catalog.topics.values()}
    wanted = {catalog.topics[name].topic_id for m in members for name in m.topics if name in catalog.topics}
    known = tuple((topic_id, topics[topic_id]) for topic_id in sorted(wanted, key=lambda each: each.bytes))
    targets = tuple((member.member_id, member.assigned) for member in members)
    return [
        ConsumerEpoch(group.group_id, epoch, known, now_ms),
        ConsumerTarget(group.group_id, epoch, "", targets),
        *members,
    ]


def _upgraded(group: Group, member: Member, catalog: Catalog) -> ConsumerMember:
    said = member.protocols.get(group.protocol or "", b"") or next(iter(member.protocols.values()), b"")
    subscription = decode_subscription(said)
    return ConsumerMember(
        group.group_id,
        member.member_id,
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        tuple(sorted(set(subscription.topics))),
        None,
        None,
        group.generation,
        group.generation,
        Phase.STABLE,
        _parts(member.assignment, catalog) if member.assignment else (),
        (),
        ClassicSide(member.session_timeout_ms, tuple(member.protocols.items())),
    )


def _parts(assignment: bytes, catalog: Catalog) -> Packed:
    given = decode_assignment(assignment).assigned_partitions
    return packed(
        (catalog.topics[each.topic].topic_id, index)
        for each in given
        if each.topic in catalog.topics
        for index in each.partitions
    )


def plan_downgrade(group: ConsumerGroup, catalog: Catalog, now_ms: int) -> GroupStored | None:
    """The group as one of the classic protocol, when all its members speak that; None while some do not."""
    sides = [member.classic for member in group.members.values()]
    if not sides or None in sides:
        return None
    known = [dict(side.protocols) for side in sides if side is not None]
    protocol = next((name for name in known[0] if all(name in each for each in known)), None)
    if protocol is None:
        return None
    members = tuple(
        StoredMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            side.session_timeout_ms if side is not None else 0,
            member.rebalance_timeout_ms,
            protocols[protocol],
            classic_assignment(member, catalog),
        )
        for member, side, protocols in zip(group.members.values(), sides, known, strict=True)
    )
    # Nobody has been told of the epoch that began with the last one's leaving: their own goes on as a generation.
    generation = max(member.epoch for member in group.members.values())
    return GroupStored(group.group_id, CONSUMER, generation, protocol, members[0].member_id, members, now_ms)


def classic_assignment(member: ConsumerMember, catalog: Catalog) -> bytes:
    """What a member has, in the words of the classic protocol and in the version that it speaks."""
    said = member.classic.protocols[0][1] if member.classic is not None else b"\0\0"
    names = [(catalog.by_id(topic_id), list(indexes)) for topic_id, indexes in member.assigned]
    return encode_assignment([(topic.name, indexes) for topic, indexes in names if topic is not None], said)
