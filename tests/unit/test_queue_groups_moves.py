"""A group that moves between the classic and the newer protocol, empty or running."""

from __future__ import annotations

from typing import Any

from stage.groups import Party
from stage.newer import Newer, settle, stage_with
from stage.nodes import Stage

from penstock.errors import ErrorCode
from penstock.kafka.wire.message import decode_request, encode
from penstock.kafka.wire.messages.consumer_protocol import (
    AssignedPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartition,
)
from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.kafka.wire.messages.list_groups import ListGroupsRequest

WANTS_RAIN = b"\0\1" + encode(ConsumerProtocolSubscription(["rain"]), 1)


def given_to(member: Any) -> list[int]:
    """The partitions in a classic member's assignment."""
    raw = bytes(member.synced().assignment)
    parts = decode_request(ConsumerProtocolAssignment, raw, 1, 2).assigned_partitions
    return sorted(index for part in parts for index in part.partitions)


def assign_all(party: Party, member: Any, partitions: int) -> None:
    """A classic group of one that has every partition."""
    member.join(protocols={"range": WANTS_RAIN})
    party.stage.wait(1_000)
    member.joined()
    everything = ConsumerProtocolAssignment([AssignedPartition("rain", list(range(partitions)))])
    member.sync_with(b"\0\1" + encode(everything, 1))
    party.stage.end_syncs()
    member.synced()


def rejoin(party: Party, member: Any, has: list[int]) -> list[int]:
    """Join again with what it has kept, and learn what it has."""
    topic = OwnedPartition("rain", has)
    wants = b"\0\1" + encode(ConsumerProtocolSubscription(["rain"], owned_partitions=[topic] if has else []), 1)
    member.join(protocols={"range": wants})
    party.stage.end_syncs()
    assert member.joined().error_code == 0
    member.sync()
    return given_to(member)


def test_an_empty_group_changes_its_protocol_and_keeps_its_positions() -> None:
    party = Party(1)
    (classic,) = party
    party.form(classic)
    classic.commit(7)
    newer = Newer(party.stage, "one")
    classic.leave()
    party.stage.end_syncs()
    assert newer.beat().error_code == 0
    kinds = [(group.group_id, group.group_type) for group in party.stage.ask(ListGroupsRequest()).groups]
    assert kinds == [("g", "consumer")]
    newer.epoch = -1
    newer.beat()
    classic.member_id = ""
    party.form(classic)
    for stage in (party.stage, Stage(party.stage.disk)):
        (group,) = stage.ask(ListGroupsRequest()).groups
        assert (group.group_type, group.group_state) == ("classic", "Stable")
        (position,) = stage.node.groups.table.positions["g"].values()
        assert position.offset == 7


def test_a_running_group_moves_to_the_newer_protocol_and_back() -> None:
    """The classic member keeps working in its own protocol; it gives back before the newer one takes."""
    party = Party(1, partitions=4)
    (classic,) = party
    assign_all(party, classic, 4)
    classic.commit(3)
    newer = Newer(party.stage, "one")
    assert newer.beat().error_code == 0
    assert newer.count == 0
    (group,) = party.stage.ask(ListGroupsRequest()).groups
    assert group.group_type == "consumer"
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    keeps = rejoin(party, classic, [0, 1, 2, 3])
    assert len(keeps) == 2
    assert newer.beat().error_code == 0
    assert newer.count == 0
    rejoin(party, classic, keeps)
    settle(newer)
    assert sorted(keeps + next(iter(newer.has.values()))) == [0, 1, 2, 3]
    assert (classic.beat(), classic.commit(4), newer.commit()) == (0, 0, 0)
    party.restart()
    newer.stage = party.stage
    assert (classic.beat(), newer.beat().error_code) == (0, 0)
    newer.epoch = -1
    newer.beat()
    (group,) = party.stage.ask(ListGroupsRequest()).groups
    assert (group.group_type, group.group_state) == ("classic", "PreparingRebalance")
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    classic.join(protocols={"range": WANTS_RAIN})
    assert classic.joined().leader == classic.member_id
    (position,) = party.stage.node.groups.table.positions["g"].values()
    assert position.offset == 5


def test_a_classic_member_joins_a_group_of_the_newer_protocol() -> None:
    """It is given an id first, as always, and gets its share without anybody to wait for."""
    party = Party(1, partitions=4)
    (classic,) = party
    newer = Newer(party.stage, "one")
    newer.beat()
    assert newer.count == 4
    classic.join(protocols={"range": WANTS_RAIN})
    party.stage.end_syncs()
    assert classic.joined().error_code == 0
    settle(newer)
    assert newer.count == 2
    assert classic.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert len(rejoin(party, classic, [])) == 2
    assert classic.leave() == 0
    settle(newer)
    assert newer.count == 4


def test_what_is_no_consumer_stays_apart_from_the_newer_protocol() -> None:
    party = Party(1)
    (classic,) = party
    party.form(classic)
    newer = Newer(party.stage, "one")
    assert newer.beat().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    other = Newer(party.stage, "two")
    other.stage = stage = stage_with()
    other.beat()
    request = JoinGroupRequest("g", 10_000, 10_000, "", None, "connect", [JoinGroupRequestProtocol("x", b"")])
    assert stage.ask(request, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_upgrade_that_cannot_be_kept_has_not_happened() -> None:
    party = Party(1)
    (classic,) = party
    assign_all(party, classic, 1)
    newer = Newer(party.stage, "one")
    party.stage.disk.faults.room = 0
    assert newer.beat().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    party.stage.disk.faults.room = None
    (group,) = party.stage.ask(ListGroupsRequest()).groups
    assert group.group_type == "classic"
    assert classic.beat() == 0
