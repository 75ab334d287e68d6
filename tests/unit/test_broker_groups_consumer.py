"""Groups of the newer protocol (KIP-848): the broker assigns, members give back before others take."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from stage.groups import Party
from stage.nodes import Stage

from penstock.broker.groups import patterns
from penstock.broker.groups.assignors import ASSIGNORS, Wish
from penstock.broker.groups.patterns import Patterns
from penstock.broker.groups.regex import PatternError
from penstock.errors import ErrorCode
from penstock.wire.message import decode_request, encode
from penstock.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from penstock.wire.messages.consumer_protocol import (
    AssignedPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartition,
)
from penstock.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.wire.messages.list_groups import ListGroupsRequest
from penstock.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

NEVER_MS = 2**31 - 1


class Newer:
    """A member of the newer protocol that does as it is told, unless a test says otherwise."""

    def __init__(self, stage: Stage, name: str, topics: list[str] | None = None, **said: Any) -> None:
        self.stage = stage
        self.name = name
        self.epoch = 0
        self.has: dict[UUID, list[int]] = {}
        self.said = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": topics or ["rain"], **said}

    def beat(self, *, owned: dict[UUID, list[int]] | None = None, **said: Any) -> Any:
        """Say what it has, and take what it is given."""
        has = [TopicPartitions(topic, parts) for topic, parts in (self.has if owned is None else owned).items()]
        request = ConsumerGroupHeartbeatRequest("g", self.name, self.epoch, topic_partitions=has)
        for name, value in (self.said | said).items() if self.epoch == 0 else said.items():
            setattr(request, name, value)
        if request.instance_id is None:
            request.instance_id = self.said.get("instance_id")
        answer = self.stage.ask(request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = {part.topic_id: part.partitions for part in answer.assignment.topic_partitions}
        return answer

    @property
    def count(self) -> int:
        return sum(map(len, self.has.values()))

    def commit(self, version: int = 9) -> int:
        request = OffsetCommitRequest("g", self.epoch, self.name)
        request.topics = [OffsetCommitRequestTopic("rain", partitions=[OffsetCommitRequestPartition(0, 5)])]
        code: int = self.stage.ask(request, version).topics[0].partitions[0].error_code
        return code


def settle(*members: Newer) -> None:
    for _ in range(6):
        for member in members:
            member.beat()


def described(stage: Stage) -> Any:
    (group,) = stage.ask(ConsumerGroupDescribeRequest(["g"])).groups
    return group


def stage_with(partitions: int = 6, **settings: Any) -> Stage:
    stage = Stage(**settings)
    stage.topic(partitions=partitions)
    return stage


def test_a_member_gets_its_partitions_with_its_first_heartbeat() -> None:
    stage = stage_with()
    one = Newer(stage, "one")
    answer = one.beat()
    assert (answer.member_epoch, answer.heartbeat_interval_ms, one.count) == (1, 5000, 6)
    assert one.beat().assignment is None
    group = described(stage)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 1, 1)


def test_nobody_is_given_what_another_has_not_given_back() -> None:
    """The newcomer waits for each partition until its owner says that it has it no more."""
    stage = stage_with()
    one, two = Newer(stage, "one"), Newer(stage, "two")
    one.beat()
    two.beat()
    assert two.count == 0
    keeps = dict(one.has)
    told = one.beat()
    assert one.count == 3
    assert told.member_epoch == 1
    assert two.beat().assignment is None
    one.beat(owned=keeps)
    assert two.beat().assignment is None
    assert described(stage).group_state == "Reconciling"
    settle(one, two)
    assert (one.count, two.count, described(stage).group_state) == (3, 3, "Stable")
    assert not set(one.has[next(iter(one.has))]) & set(two.has[next(iter(two.has))])


def test_who_does_not_give_back_in_time_is_fenced() -> None:
    """It keeps coming and keeps its partitions: after its rebalance timeout they are another's."""
    stage = stage_with(consumer_session_ms=10**9)
    one, two = Newer(stage, "one", rebalance_timeout_ms=10_000), Newer(stage, "two")
    one.beat()
    everything = dict(one.has)
    two.beat()
    one.beat()
    for _ in range(3):
        stage.wait(4_000)
        stage.end_syncs()
        last = one.beat(owned=everything)
    assert last.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(two)
    assert two.count == 6


def test_a_silent_member_is_fenced_and_cannot_commit() -> None:
    stage = stage_with(consumer_session_ms=10_000)
    one, two = Newer(stage, "one"), Newer(stage, "two")
    settle(one, two)
    stage.wait(6_000)
    two.beat()
    stage.wait(6_000)
    stage.end_syncs()
    assert one.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    assert one.beat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(two)
    assert two.count == 6


def test_an_epoch_of_another_time_is_fenced() -> None:
    """Too new, or too old; the one before is fine while nothing new was taken: its answer may have got lost."""
    stage = stage_with()
    one, two = Newer(stage, "one"), Newer(stage, "two")
    one.beat()
    two.beat()
    settle(one, two)
    now = one.epoch
    assert now > 1
    one.epoch = now + 1
    assert one.beat().error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert one.commit() == ErrorCode.STALE_MEMBER_EPOCH
    one.epoch = now - 1
    assert one.beat().error_code == 0
    assert one.epoch == now
    assert one.commit() == 0
    assert one.commit(version=8) == ErrorCode.UNSUPPORTED_VERSION


def test_nothing_is_told_before_it_is_durable() -> None:
    stage = stage_with()
    one = ConsumerGroupHeartbeatRequest("g", "one", 0, None, None, 60_000, ["rain"], topic_partitions=[])
    stage.send(one, 1)
    stage.connect(2)
    stage.send(one, 1, 2)
    assert (stage.answers(1), stage.answers(2)) == ([], [])
    stage.end_syncs()
    assert len(stage.answers(1)) == len(stage.answers(2)) == 1


def test_what_cannot_be_kept_has_not_happened() -> None:
    stage = stage_with()
    one = Newer(stage, "one")
    stage.disk.faults.room = 0
    assert one.beat().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.ask(ListGroupsRequest()).groups == []
    stage.disk.faults.room = None
    assert one.beat().error_code == 0
    assert one.count == 6


def test_a_group_survives_a_restart() -> None:
    """Members go on with their epochs; who is not heard of again is dropped."""
    stage = stage_with(consumer_session_ms=10_000)
    one, two = Newer(stage, "one"), Newer(stage, "two")
    settle(one, two)
    before = described(stage)
    again = Stage(stage.disk, consumer_session_ms=10_000)
    again.now_ms = stage.now_ms
    assert described(again) == before
    one.stage = again
    assert one.beat().error_code == 0
    again.wait(6_000)
    one.beat()
    again.wait(6_000)
    again.end_syncs()
    settle(one)
    assert one.count == 6


def test_a_static_member_that_returns_has_its_partitions_again() -> None:
    """It says that it will be back (epoch -2); nobody else gets them, and a second one of its name is refused."""
    stage = stage_with()
    one, two = Newer(stage, "one", instance_id="a"), Newer(stage, "two", instance_id="b")
    settle(one, two)
    had, epoch = dict(one.has), described(stage).group_epoch
    assert Newer(stage, "three", instance_id="a").beat().error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    one.epoch = -2
    assert one.beat().member_epoch == -2
    settle(two)
    assert two.count == 3
    again = Newer(stage, "four", instance_id="a")
    again.beat()
    assert (again.has, described(stage).group_epoch) == (had, epoch)
    one.epoch = epoch
    assert one.beat().error_code == ErrorCode.FENCED_INSTANCE_ID


def test_leaving_frees_partitions_at_once() -> None:
    stage = stage_with()
    one, two = Newer(stage, "one"), Newer(stage, "two")
    settle(one, two)
    one.epoch = -1
    assert one.beat().member_epoch == -1
    settle(two)
    assert two.count == 6
    two.epoch = -1
    two.beat()
    assert described(stage).group_state == "Empty"


def test_new_topics_and_partitions_are_assigned_with_the_next_heartbeat() -> None:
    """By name and by pattern; a topic that is deleted is nobody's."""
    stage = stage_with(2)
    one = Newer(stage, "one", ["rain", "snow"])
    two = Newer(stage, "two", subscribed_topic_names=[], subscribed_topic_regex="h.*l")
    settle(one, two)
    assert (one.count, two.count) == (2, 0)
    stage.topic("snow", partitions=3)
    stage.topic("hail", partitions=4)
    settle(one, two)
    assert (one.count, two.count) == (5, 4)


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


@pytest.mark.parametrize("name", ASSIGNORS)
def test_assignors_give_every_partition_to_one_who_wants_it(name: str) -> None:
    """As even as can be; who wants nothing gets nothing; the same question has the same answer."""
    a, b, c = (UUID(int=number) for number in (1, 2, 3))
    wishes = [Wish("m1", (a, b), {}), Wish("m2", (a, b), {}), Wish("m3", (b,), {}), Wish("m4", (), {})]
    given = ASSIGNORS[name](wishes, {a: 4, b: 6, c: 2})
    assert sorted(part for parts in given.values() for part in parts) == [
        (t, i) for t, n in ((a, 4), (b, 6)) for i in range(n)
    ]
    for wish in wishes:
        assert {part[0] for part in given[wish.member_id]} <= set(wish.topics)
    assert given == ASSIGNORS[name](wishes, {a: 4, b: 6, c: 2})
    sizes = sorted(len(given[name]) for name in ("m1", "m2", "m3"))
    assert sizes in ([3, 3, 4], [2, 4, 4])


def test_uniform_moves_no_more_than_it_must() -> None:
    topic = UUID(int=1)
    had = {"m1": {(topic, n): None for n in range(6)}, "m2": {(topic, n): None for n in range(6, 12)}, "m3": {}}
    given = ASSIGNORS["uniform"]([Wish(name, (topic,), parts) for name, parts in had.items()], {topic: 12})
    assert [len(parts) for parts in given.values()] == [4, 4, 4]
    kept = sum(part in had[name] for name, parts in given.items() for part in parts)
    assert kept == 8


def test_a_pattern_cannot_hang_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take a backtracking matcher longer than the universe lasts is matched, or refused, at once."""
    names = ["a" * 248 + "c", "x" * 249] * 20
    for pattern in ("(a*)*b", "(a|a)*b", "(x+x+)+y", "(.*.*.*)*y"):
        assert Patterns().matching(pattern, names, 1) == ()
    for pattern in (
        "a{250}{250}",
        "((((a{9}){9}){9}){9}){9}",
        "(" * 40 + ")" * 40,
        "a" * 1001,
        "(",
        "[a",
        "a**",
        "\\1",
        "(?=a)",
    ):
        with pytest.raises(PatternError):
            Patterns().matching(pattern, names, 1)
    monkeypatch.setattr(patterns, "WORK_FREE", 100)
    monkeypatch.setattr(patterns, "WORK_PER_CHAR", 0)
    with pytest.raises(PatternError, match="costs too much"):
        Patterns().matching("(a|b|c|d)*x", names, 1)
    stage = stage_with()
    wrong = Newer(stage, "one", subscribed_topic_names=[], subscribed_topic_regex="(")
    assert wrong.beat().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


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
