"""Groups of the newer protocol (KIP-848): the broker assigns, members give back before others take."""

from __future__ import annotations

from stage.newer import Newer, described, settle, stage_with
from stage.nodes import Stage

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.kafka.wire.messages.list_groups import ListGroupsRequest


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
