"""One step of a member of the newer protocol towards what it shall have: give back first, then take what is free."""

from __future__ import annotations

import msgspec

from penstock.queue.groups.changes import ConsumerMember, Phase
from penstock.queue.groups.consumer.group import ConsumerGroup
from penstock.queue.groups.consumer.partitions import Packed, Parts, packed, unpacked


def plan_next(group: ConsumerGroup, member: ConsumerMember, owned: Parts | None) -> ConsumerMember:
    """The member as it is after this heartbeat; `owned` is what it says it has, if it says so."""
    if member.phase is Phase.STABLE and member.epoch == group.target_epoch:
        return member
    if member.phase is Phase.REVOKING:
        if _still_has(owned, unpacked(member.revoking)):
            return member
        return _advance(group, member, member.epoch + 1, owned)
    return _advance(group, member, member.epoch, owned)


def _still_has(owned: Parts | None, revoked: Parts) -> bool:
    return owned is None or any(part in owned for part in revoked)


def _advance(group: ConsumerGroup, member: ConsumerMember, epoch: int, owned: Parts | None) -> ConsumerMember:
    target, assigned = group.target(member.member_id), unpacked(member.assigned)
    kept = [part for part in assigned if part in target]
    revoked = {part: None for part in assigned if part not in target}
    wanted = [part for part in target if part not in assigned]
    free = [part for part in wanted if group.owners.get(part, member.member_id) == member.member_id]
    if revoked and _still_has(owned, revoked):
        return _moved(member, epoch, Phase.REVOKING, packed(kept), packed(revoked))
    phase = Phase.STABLE if len(free) == len(wanted) else Phase.WAITING
    return _moved(member, group.target_epoch, phase, packed([*kept, *free]), ())


def _moved(member: ConsumerMember, epoch: int, phase: Phase, assigned: Packed, revoking: Packed) -> ConsumerMember:
    previous = member.previous_epoch if epoch == member.epoch else member.epoch
    return msgspec.structs.replace(
        member, epoch=epoch, previous_epoch=previous, phase=phase, assigned=assigned, revoking=revoking
    )
