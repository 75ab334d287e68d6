"""What must hold of groups: after every event, and of every answer at the moment it is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.join_group import JoinGroupRequest
from penstock.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.queue.groups.changes import decode_change
from penstock.queue.groups.consumer.group import held
from penstock.queue.groups.consumer.partitions import Part
from penstock.queue.groups.table import GroupTable
from penstock.queue.log.layout import GROUPS_FOLDER
from proof.sim.network import Asked
from proof.sim.promises import Place
from proof.sim.table_logs import unlike_replay

if TYPE_CHECKING:
    from proof.sim.world_view import WorldView

JOIN_WAIT_MS = 10_000  # the longest rebalance timeout of any member, twice, and what a group waits for newcomers


def groups_equal_replay(world: WorldView) -> str | None:
    """What the node knows of groups is what the durable group log says, no more and no less."""
    if world.node is None:
        return None
    coordinator = world.node.groups

    def rebuild(values: list[bytes]) -> object:
        rebuilt = GroupTable()
        for value in values:
            rebuilt.replay_(decode_change(value))
        return _facts(rebuilt)

    return unlike_replay(world, GROUPS_FOLDER, coordinator.journal.partition.log, rebuild, _facts(coordinator.table))


def _facts(table: GroupTable) -> object:
    # A snapshot may tell the same in another order.
    consumers = {
        group_id: (stored.epoch, stored.target, dict(stored.members))
        for group_id, stored in table.consumers.groups.items()
    }
    positions = {group_id: dict(positions) for group_id, positions in table.positions.items()}
    return dict(table.groups), consumers, positions, table.bytes, table.consumers.bytes


def positions_never_go_back(world: WorldView) -> str | None:
    """A group stands at least where it was told that it stands, whatever happened since."""
    node = world.node
    if node is None:
        return None
    for (group, place), offset in world.ledger.committed.items():
        topic = world.ledger.topics[place.topic]
        if topic.is_going:
            continue
        found = node.groups.table.position(group, topic.topic_id, place.number)
        if found is None or found.offset < offset:
            stands = "nowhere" if found is None else f"at {found.offset}"
            return f"{group} was told that {place.topic}-{place.number} is at {offset}, and stands {stands}"
    return None


def one_owner_at_a_time(world: WorldView) -> str | None:
    """In a group of the newer protocol nobody is given what another has not given back."""
    for group in world.node.groups.consumers.groups.values() if world.node is not None else ():
        owners: dict[Part, str] = {}
        for member in group.members.values():
            for part in held(member):
                if owners.setdefault(part, member.member_id) != member.member_id:
                    return f"{part[0]}-{part[1]} is with {owners[part]} and {member.member_id}"
    return None


def join_is_answered(world: WorldView) -> str | None:
    """Nobody waits for a generation longer than the slowest member may take."""
    node = world.node
    if node is None:
        return None
    for link in world.links.values():
        if not link.unanswered or link.is_closing or link.number not in node.connections:
            continue
        asked = link.unanswered[0]
        request = asked.request
        # A static member that returns waits for the disk instead.
        is_bound = isinstance(request, JoinGroupRequest) and request.group_instance_id is None
        if isinstance(request, JoinGroupRequest) and is_bound and not node.connections[link.number].backlog:
            waits_ms = world.now_ms - asked.waits_from_ms
            # A moment may itself be longer than the limit: then it is answered in it.
            if waits_ms > JOIN_WAIT_MS and asked.waits_from_ms < world.before_ms - JOIN_WAIT_MS:
                return f"{link.client.name} waits for {waits_ms} ms to join {request.group_id}"
    return None


def one_owner_in_a_generation(world: WorldView, asked: Asked, response: Message) -> str | None:
    """A partition belongs to one member of a generation, whenever and however often they ask."""
    request = asked.request
    if not isinstance(request, SyncGroupRequest) or not isinstance(response, SyncGroupResponse) or response.error_code:
        return None
    world.ledger.handed_out.setdefault((request.group_id, request.generation_id), world.now_ms)
    owners = world.ledger.owners.setdefault((request.group_id, request.generation_id), {})
    who = request.group_instance_id or request.member_id
    for name, index in json.loads(bytes(response.assignment) or b"[]"):
        owner = owners.setdefault(Place(name, index), who)
        if owner != who:
            return f"{name}-{index} belongs to {owner} and {who} in generation {request.generation_id}"
    return None


def nobody_fenced_commits(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Once a generation was handed out, members of earlier ones commit nothing; notes what is promised to others."""
    request = asked.request
    if not isinstance(request, OffsetCommitRequest) or not isinstance(response, OffsetCommitResponse):
        return None
    offsets: dict[Place, int] = asked.tag  # type: ignore[assignment]  # set when asking
    generation = request.generation_id_or_member_epoch
    for place, topic in zip(offsets, response.topics, strict=True):
        if topic.partitions[0].error_code:
            continue
        key = (request.group_id, place)
        world.ledger.committed[key] = max(offsets[place], world.ledger.committed.get(key, 0))
        for (group, newer), handed_ms in world.ledger.handed_out.items():
            if group == request.group_id and newer > generation >= 0 and asked.delivered_ms > handed_ms:
                return f"{request.member_id} of generation {generation} committed after {newer} was handed out"
    return None
