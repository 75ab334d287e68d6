"""Classic groups: generations, who is in them, and who is told that it is not."""

from __future__ import annotations

from typing import Any

import pytest
from stage.groups import Party
from stage.nodes import Stage

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.delete_groups import DeleteGroupsRequest
from penstock.kafka.wire.messages.describe_groups import DescribeGroupsRequest
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.kafka.wire.messages.list_groups import ListGroupsRequest
from penstock.queue.core.events import Note
from penstock.queue.groups.coordinator import TELL_FULL_MS


def test_a_crowd_that_comes_at_once_is_one_rebalance() -> None:
    """Ten members within the initial delay are one generation, with one leader who learns of all."""
    party = Party(10)
    for member in party:
        member.join()
        party.stage.wait(30)
    party.stage.wait(200)
    answers = [member.joined() for member in party]
    assert {answer.generation_id for answer in answers} == {1}
    assert {answer.leader for answer in answers} == {answers[0].member_id}
    assert [len(answer.members) for answer in answers] == [10] + [0] * 9


def test_a_lone_member_waits_for_the_delay_only() -> None:
    party = Party(1, group_initial_delay_ms=100)
    (member,) = party
    member.join()
    party.stage.wait(99)
    assert member.answers() == []
    party.stage.wait(1)
    assert member.joined().generation_id == 1


def test_a_newcomer_makes_the_others_join_again() -> None:
    """Each learns of it by its heartbeat; the next generation begins when all have joined, not before."""
    party = Party(3)
    one, two, three = party
    party.form(one, two)
    three.join()
    assert [member.beat() for member in (one, two)] == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    one.join()
    assert three.answers() == []
    two.join()
    assert [member.joined().generation_id for member in party] == [2, 2, 2]


def test_nobody_gets_an_assignment_before_it_is_durable() -> None:
    party = Party(2)
    one, two = party
    party.join(one, two)
    two.sync()
    one.sync(one, two)
    assert (one.answers(), two.answers()) == ([], [])
    party.stage.end_syncs()
    assert [bytes(member.synced().assignment) for member in party] == [b"0", b"1"]


def test_who_does_not_join_in_time_is_left_behind() -> None:
    """After the rebalance timeout the generation begins without it, and it is told so when it wakes up."""
    party = Party(2, rebalance_ms=20_000, session_ms=60_000)
    one, two = party
    party.form(one, two)
    one.join(protocols={"range": b"new"})
    party.stage.wait(19_999)
    assert one.answers() == []
    party.stage.wait(1)
    answer = one.joined()
    assert (answer.generation_id, len(answer.members)) == (2, 1)
    assert two.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert two.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_dropped_after_its_session_timeout() -> None:
    party = Party(2, session_ms=10_000)
    one, two = party
    party.form(one, two)
    for _ in range(4):
        party.stage.wait(3_000)
        said = one.beat()
    assert said == ErrorCode.REBALANCE_IN_PROGRESS
    assert two.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    one.join()
    assert one.joined().generation_id == 2


def test_a_commit_keeps_a_session_alive() -> None:
    party = Party(1, session_ms=10_000)
    (one,) = party
    party.form(one)
    for _ in range(5):
        party.stage.wait(9_000)
        assert one.commit(1) == 0
    assert one.beat() == 0


def test_whoever_wakes_late_is_fenced() -> None:
    """A member of an older generation can neither beat, nor sync, nor commit."""
    party = Party(2)
    one, two = party
    party.form(one)
    late = one.generation
    two.join()
    one.join()
    party.join_done(one, two)
    party.hand_out(one, two)
    one.generation = late
    assert one.beat() == ErrorCode.ILLEGAL_GENERATION
    assert one.commit(5) == ErrorCode.ILLEGAL_GENERATION
    one.sync()
    assert one.synced().error_code == ErrorCode.ILLEGAL_GENERATION


def test_nobody_commits_while_a_generation_is_handed_out() -> None:
    """Between join and sync nobody knows whose partition it is."""
    party = Party(1)
    (one,) = party
    party.join(one)
    assert one.commit(5) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_that_never_syncs_is_dropped() -> None:
    party = Party(2, rebalance_ms=20_000, session_ms=60_000)
    one, two = party
    party.join(one, two)
    one.sync(one, two)
    party.stage.end_syncs()
    one.synced()
    party.stage.wait(20_000)
    assert one.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert two.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_is_never_used_holds_nobody_up() -> None:
    """KIP-394: who was given an id and never came back is waited for at most for its session timeout."""
    party = Party(2, session_ms=10_000)
    one, two = party
    party.form(one)
    two.ask_for_id()
    one.join(protocols={"range": b"changed"})
    assert one.answers() == []
    party.stage.wait(10_000)
    assert one.joined().generation_id == 2


def test_a_leader_that_leaves_is_followed_by_another() -> None:
    party = Party(2)
    one, two = party
    party.form(one, two)
    assert one.leave() == 0
    two.join()
    assert two.joined().leader == two.member_id


def test_the_last_one_out_leaves_an_empty_group() -> None:
    """Also after a restart: the empty generation is durable."""
    party = Party(1)
    (one,) = party
    party.form(one)
    one.leave()
    party.stage.end_syncs()
    for stage in (party.stage, Stage(party.stage.disk)):
        (group,) = stage.ask(ListGroupsRequest()).groups
        assert (group.group_id, group.group_state, group.protocol_type) == ("g", "Empty", "consumer")


def test_members_survive_a_restart_and_have_to_be_heard_of() -> None:
    """The generation goes on where it was; who is silent then is dropped as always."""
    party = Party(2, session_ms=10_000)
    one, two = party
    party.form(one, two)
    party.restart()
    assert [one.beat(), two.beat()] == [0, 0]
    (group,) = party.stage.ask(DescribeGroupsRequest(["g"])).groups
    assert sorted(bytes(member.member_assignment) for member in group.members) == [b"0", b"1"]
    party.stage.wait(6_000)
    assert one.beat() == 0
    party.stage.wait(6_000)
    assert one.beat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_member_returns_without_a_rebalance() -> None:
    """KIP-345: it has a new id, the same assignment, and whoever used the old id is fenced."""
    party = Party(2)
    one, two = party
    party.form(one, two, instances=("a", "b"))
    old_id, old_generation = two.member_id, two.generation
    two.member_id = ""
    two.join(instance="b")
    party.stage.end_syncs()
    answer = two.joined()
    assert (answer.generation_id, answer.leader, answer.skip_assignment) == (old_generation, one.member_id, False)
    two.sync()
    assert bytes(two.synced().assignment) == b"1"
    assert one.beat() == 0
    new_id, two.member_id = two.member_id, old_id
    assert two.beat(instance="b") == ErrorCode.FENCED_INSTANCE_ID
    assert two.commit(5, instance="b") == ErrorCode.FENCED_INSTANCE_ID
    two.member_id = new_id
    party.restart()
    assert two.beat(instance="b") == 0


@pytest.mark.parametrize(("version", "skips"), [(9, True), (8, False)])
def test_a_static_leader_that_returns_leaves_all_as_it_is(version: int, skips: bool) -> None:
    """A version that can be told so is told to skip the assignment; an older one that another leads."""
    party = Party(1)
    (one,) = party
    party.form(one, instances=("a",))
    old_id, one.member_id = one.member_id, ""
    one.join(instance="a", version=version)
    party.stage.end_syncs()
    answer = one.joined()
    assert (answer.skip_assignment, answer.leader == old_id) == (skips, not skips)


def test_a_return_that_cannot_be_kept_is_refused() -> None:
    """The static member's new id is true only once it is durable."""
    party = Party(1)
    (one,) = party
    party.form(one, instances=("a",))
    one.member_id = ""
    one.join(instance="a")
    party.stage.end_syncs("no")
    assert one.joined().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_member_that_changes_its_mind_is_a_rebalance_and_one_that_asks_again_is_not() -> None:
    party = Party(2)
    one, two = party
    party.form(one, two)
    two.join()
    assert two.joined().generation_id == 1
    two.join(protocols={"range": b"other"})
    assert two.answers() == []
    assert one.beat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_protocol_most_members_like_best_is_chosen() -> None:
    party = Party(3)
    liked = [("range", "sticky"), ("sticky", "range"), ("sticky", "range", "other")]
    for member, names in zip(party, liked, strict=True):
        member.join(protocols=dict.fromkeys(names, b""))
    party.stage.wait(1_000)
    assert {member.joined().protocol_name for member in party} == {"sticky"}


def test_what_has_nothing_in_common_stays_apart() -> None:
    party = Party(2)
    one, two = party
    party.form(one)
    two.join(protocols={"strange": b""})
    assert two.joined().error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_and_groups_are_bounded() -> None:
    """Over a limit there is a clean error; too many groups are told in the log, once a minute."""
    full = ErrorCode.GROUP_MAX_SIZE_REACHED
    party = Party(3, group_members_max=2)
    one, two, three = party
    party.form(one, two)
    three.ask_for_id()
    assert three.joined().error_code == full
    party = Party(2, groups_max=1)
    one, two = party
    one.ask_for_id()
    for _ in range(3):
        two.ask_for_id(group="other")
        assert two.joined().error_code == full
    party.stage.wait(TELL_FULL_MS)
    one.ask_for_id()
    two.ask_for_id(group="more")
    assert two.joined().error_code == full
    told = [note.details for note in party.stage.seen(Note) if note.event == "group refused"]
    assert [details["group"] for details in told] == ["other", "more"]
    assert all("(groups_max)" in str(details["reason"]) for details in told)
    party = Party(1, group_bytes_max=1024)
    (one,) = party
    one.join(protocols={"range": b"x" * 2000})
    assert one.joined().error_code == full


def test_the_last_member_that_a_group_takes_comes_in_with_the_id_it_was_given() -> None:
    """The place that is kept for an id is its own, not another's."""
    party = Party(1, group_members_max=1)
    (one,) = party
    one.join()
    party.stage.wait(1_000)
    assert one.joined().error_code == 0


def test_a_group_with_members_is_not_deleted_and_an_empty_one_is() -> None:
    party = Party(1)
    (one,) = party
    party.form(one)
    one.commit(7)
    delete = DeleteGroupsRequest(["g", "other"])
    codes = {result.group_id: result.error_code for result in party.stage.ask(delete).results}
    assert codes == {"g": ErrorCode.NON_EMPTY_GROUP, "other": ErrorCode.GROUP_ID_NOT_FOUND}
    one.leave()
    party.stage.end_syncs()
    assert [result.error_code for result in party.stage.ask(DeleteGroupsRequest(["g"])).results] == [0]
    assert party.stage.ask(ListGroupsRequest()).groups == []
    assert Stage(party.stage.disk).node.groups.groups == {}


def test_a_deletion_that_cannot_be_kept_has_not_happened() -> None:
    party = Party(1)
    (one,) = party
    party.form(one)
    one.leave()
    party.stage.end_syncs()
    party.stage.disk.faults.room = 0
    (result,) = party.stage.ask(DeleteGroupsRequest(["g"])).results
    assert result.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [group.group_id for group in party.stage.ask(ListGroupsRequest()).groups] == ["g"]


def test_several_members_leave_with_one_request() -> None:
    party = Party(3)
    one, two, three = party
    party.form(one, two, three, instances=("a", "b", None))
    leavers = [MemberIdentity("", "b"), MemberIdentity(three.member_id), MemberIdentity("", "x"), MemberIdentity("y")]
    answer = party.stage.ask(LeaveGroupRequest("g", members=leavers))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.error_code for member in answer.members] == [0, 0, unknown, unknown]
    one.join(instance="a")
    assert len(one.joined().members) == 1


def test_a_full_disk_costs_a_generation_nothing_but_time() -> None:
    """What the leader decided could not be kept: everybody is sent away to try again, and then it works."""
    party = Party(1)
    (one,) = party
    party.join(one)
    party.stage.disk.faults.room = 0
    one.sync(one)
    assert one.synced().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    party.stage.disk.faults.room = None
    assert one.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    party.form(one)
    assert one.commit(1) == 0


def test_every_kind_of_coordinator_that_exists_is_found() -> None:
    stage = Stage()

    def found(kind: int) -> Any:
        return stage.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=["x"])).coordinators[0]

    assert [(found(kind).error_code, found(kind).port) for kind in (0, 1)] == [(0, 9092)] * 2
    assert found(2).error_code == ErrorCode.INVALID_REQUEST
