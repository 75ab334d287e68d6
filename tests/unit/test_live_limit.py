"""Where a live stream ends: what stands before the end, and when all of that was given."""

from __future__ import annotations

import pytest

from penstock.client.record import Record
from penstock.connectors.live.backlog import Backlog
from penstock.connectors.live.envelope import Body, Message
from penstock.connectors.live.limit import Limit
from penstock.connectors.live.recent import Recent
from penstock.connectors.live.start_position import Until, parse_until
from penstock.connectors.live.stream import Client, Stream, TopicState

A0, A1 = ("a", 0), ("a", 1)


def record(offset: int, partition: int = 0, at_ms: int = 0) -> Record:
    return Record("a", partition, offset, at_ms, None, b"1", [])


@pytest.mark.parametrize(
    ("text", "topics", "wanted"),
    [
        (None, ("a",), None),
        ("now", ("a",), Until("now")),
        ("end", ("a", "b"), Until("now")),
        ("0:124,1:456", ("a",), Until("now", {A0: 124, A1: 456})),
        ("a=0:7;b=0:1", ("a", "b"), Until("now", {A0: 7, ("b", 0): 1})),
        ("2026-11-16T12:00:00Z", ("a",), Until(1_794_830_400_000)),
        ("2026-11-16T13:00:00 01:00", ("a",), Until(1_794_830_400_000)),
    ],
)
def test_every_form_of_an_end_is_read(text: str | None, topics: tuple[str, ...], wanted: Until | None) -> None:
    assert parse_until({} if text is None else {"until": text}, topics) == wanted


@pytest.mark.parametrize(
    ("text", "topics", "told"),
    [
        ("later", ("a",), "until is now, end, latest, offsets like 0:124,1:456, a resume token or a time like"),
        ("", ("a",), "until is now"),
        ("-5", ("a",), "until is now"),
        ("2026-11-16T12:00:00", ("a",), "until is now"),
        ("0:1", ("a", "b"), "is for one topic"),
        ("0:1,0:2", ("a",), "named twice"),
        ("c=0:1", ("a",), "not delivered here"),
    ],
)
def test_what_is_no_end_is_refused_with_what_is_known(text: str, topics: tuple[str, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_until({"until": text}, topics)


def test_an_end_is_reached_when_each_partition_is() -> None:
    """An end is the offset that comes next: the record at it is not given."""
    limit = Limit({A0: 0, A1: 5}, {A0: 2, A1: 5}, {A0: 2, A1: 5})
    assert [limit.admits(record(offset)) for offset in (0, 1, 2)] == [True, True, False]
    assert not limit.admits(record(0, partition=2)), "a partition that came later"
    limit.reach(A0, 1)
    assert not limit.is_reached
    limit.reach(A0, 4)
    assert limit.is_reached
    assert limit.positions == {A0: 2, A1: 5}, "what stands behind the end was not given"


def test_a_start_behind_the_end_is_the_end() -> None:
    limit = Limit({A0: 9}, {A0: 10}, {A0: 2})
    assert limit.is_reached
    assert limit.positions == {A0: 9}


def test_a_start_behind_the_topic_goes_back_before_it_ends() -> None:
    """The topic was made again: its reader tells a gap, and reads what is there."""
    limit = Limit({A0: 999}, {A0: 2}, {A0: 2})
    limit.reach(A0, 999)
    limit.close(A0)
    assert (limit.is_stale, limit.is_reached) == (True, False)
    limit.reach(A0, 0)
    assert (limit.is_stale, limit.is_reached) == (False, False)
    limit.reach(A0, 2)
    assert limit.is_reached


def test_a_topic_that_is_made_again_ends_a_stream_that_waits_for_its_offsets() -> None:
    limit = Limit({A0: 5, A1: 0}, {A0: 5, A1: 0}, {A0: 1_000, A1: 1})
    limit.close(A0)
    assert not limit.is_reached
    assert not limit.admits(record(6))
    limit.reach(A1, 1)
    assert limit.is_reached


def test_a_time_in_the_future_gives_what_is_older_and_then_ends() -> None:
    """A record as young as the time ends its partition, whatever comes behind it."""
    limit = Limit({A0: 0}, {A0: 0}, None, 1_000)
    assert limit.admits(record(0, at_ms=999))
    assert not limit.admits(record(1, at_ms=1_000))
    assert not limit.admits(record(2, at_ms=500))
    limit.reach(A0, 3)
    assert not limit.is_reached
    limit.settle({A0: 1})
    assert limit.is_reached


class Room:
    """A stream of one topic with one client whose stream ends."""

    def __init__(self, limit: Limit, positions: dict[tuple[str, int], int]) -> None:
        self.topic = TopicState("a", True, Recent({0: 0}, 10, 1000))
        self.stream = Stream([self.topic])
        backlog: Backlog[Message] = Backlog("disconnect", 1000, 10**6)
        self.client = Client(backlog, None, lambda: None, lambda _: False)
        self.client.limit = limit
        self.limit = limit
        self.stream.attach(self.client, positions)

    def hand_out(self, offset: int) -> None:
        body = Body(record(offset))
        self.topic.advance(body)
        self.stream.publish(body)

    @property
    def given(self) -> int:
        return len(self.client.backlog)


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_client_of_the_tail_is_woken_at_its_end_and_gets_nothing_behind_it(ahead: int) -> None:
    room = Room(Limit({A0: ahead}, {A0: ahead}, {A0: 2}), {A0: ahead})
    room.hand_out(0)
    room.hand_out(1)
    assert (room.given, room.limit.is_reached, room.client.wake.is_set()) == (2 - ahead, True, True)
    room.hand_out(2)
    assert room.given == 2 - ahead


def test_an_end_without_a_record_is_reached_when_the_tail_sees_it() -> None:
    """The mark of a transaction stands at the last offset: no record shows that the end is there."""
    room = Room(Limit({A0: 0}, {A0: 2}, {A0: 2}), {A0: 0})
    room.hand_out(0)
    assert not room.limit.is_reached
    room.topic.reach(0, 2)
    room.stream.reach(A0, 2)
    assert (room.limit.is_reached, room.client.wake.is_set()) == (True, True)


def test_an_end_that_the_tail_saw_before_is_reached_at_once() -> None:
    topic = TopicState("a", True, Recent({0: 1}, 10, 1000))
    topic.reach(0, 2)
    stream = Stream([topic])
    backlog: Backlog[Message] = Backlog("disconnect", 1000, 10**6)
    client = Client(backlog, None, lambda: None, lambda _: False)
    client.limit = Limit({A0: 1}, {A0: 2}, {A0: 2})
    stream.attach(client, {A0: 1})
    assert client.limit.is_reached


def test_a_topic_made_again_wakes_who_waits_for_its_offsets() -> None:
    room = Room(Limit({A0: 0}, {A0: 0}, {A0: 1_000}), {A0: 0})
    for offset in range(3):
        room.hand_out(offset)
    body = Body(record(0))
    assert room.topic.advance(body)
    room.client.wake.clear()
    room.stream.begin_again(A0)
    room.stream.publish(body)
    assert (room.limit.is_reached, room.client.wake.is_set(), room.given) == (True, True, 3)
