"""The lags of groups, asked in one thread and closed in another."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from penstock.client import group_lags
from penstock.client.group_lags import GroupOffsets
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

DEADLINE_S = 30.0
SHORT_S = 0.2
PLACE = ("in", 0)


def answer(**fields: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(SimpleNamespace(**fields))
    return future


class Admin:
    """A queue with one group, which stands one offset before the end of its partition."""

    def __init__(self) -> None:
        self.committed, self.ends = {PLACE: 3}, {PLACE: 4}
        self.goes_on = threading.Event()
        self.is_asked = threading.Event()
        self.goes_on.set()

    def list_consumer_groups(self, **_: Any) -> Future[Any]:
        self.is_asked.set()
        self.goes_on.wait(DEADLINE_S)
        return answer(valid=[SimpleNamespace(group_id="g")])

    def list_consumer_group_offsets(
        self, groups: list[ConsumerGroupTopicPartitions], **_: Any
    ) -> Mapping[str, Future[Any]]:
        places = [TopicPartition(*place, offset) for place, offset in self.committed.items()]
        return {group.group_id: answer(topic_partitions=places) for group in groups}

    def list_offsets(self, places: Mapping[TopicPartition, Any], **_: Any) -> Mapping[TopicPartition, Future[Any]]:
        return {place: self._end(place) for place in places}

    def _end(self, place: TopicPartition) -> Future[Any]:
        end = self.ends.get((place.topic, place.partition))
        if end is not None:
            return answer(offset=end)
        gone: Future[Any] = Future()
        gone.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return gone


class Tails:
    """A TailReader whose reads last until `goes_on` is set. One marker stands at each end.

    As the real one does, it leaves out a place that it did not read in time, and one with an open transaction.
    """

    def __init__(self) -> None:
        self.is_read, self.goes_on = threading.Event(), threading.Event()
        self.calls: list[str] = []
        self.asked: list[set[tuple[str, int]]] = []
        self.late: set[tuple[str, int]] = set()

    def open(self, queue: str) -> Tails:
        self.calls.append("opened")
        return self

    def record_ends(self, ends: Mapping[tuple[str, int], int], within_s: float) -> dict[tuple[str, int], int]:
        self.is_read.set()
        self.goes_on.wait(DEADLINE_S)
        self.calls.append("read")
        self.asked.append(set(ends))
        return {place: end - 1 for place, end in ends.items() if place not in self.late}

    def close(self) -> None:
        self.calls.append("closed")


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    found = Admin()
    monkeypatch.setattr(group_lags, "admin_client", lambda queue: found)
    return found


@pytest.fixture
def tails(monkeypatch: pytest.MonkeyPatch) -> Tails:
    found = Tails()
    monkeypatch.setattr(group_lags, "TailReader", found.open)
    return found


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


def test_a_reader_is_closed_only_when_its_read_has_ended(
    admin: Admin, tails: Tails, threads: ThreadPoolExecutor
) -> None:
    """The consumer must not be closed under a poll in another thread."""
    offsets = GroupOffsets(KafkaTarget.parse("127.0.0.1:1"), ["in"], 10)
    lags = threads.submit(offsets.lags, DEADLINE_S)
    assert tails.is_read.wait(DEADLINE_S)
    closing = threads.submit(offsets.close)
    wait([closing], SHORT_S)
    tails.goes_on.set()
    assert lags.result(DEADLINE_S).lags == {("g", "in"): 0}
    closing.result(DEADLINE_S)
    assert tails.calls == ["opened", "read", "closed"]


def test_no_reader_is_made_after_close(admin: Admin, tails: Tails, threads: ThreadPoolExecutor) -> None:
    """Neither by a call that was under way, nor by a later one."""
    offsets = GroupOffsets(KafkaTarget.parse("127.0.0.1:1"), ["in"], 10)
    tails.goes_on.set()
    admin.goes_on.clear()
    lags = threads.submit(offsets.lags, DEADLINE_S)
    assert admin.is_asked.wait(DEADLINE_S)
    offsets.close()
    admin.goes_on.set()
    for call in (lags.result, offsets.lags):
        with pytest.raises(PenstockError, match="closed"):
            call(DEADLINE_S)
    assert tails.calls == []


def test_a_tail_is_read_again_only_after_its_end_has_moved(admin: Admin, tails: Tails) -> None:
    """A scrape of a quiet queue reads no records; what a group commits needs none either."""
    first, second = PLACE, ("in", 1)
    admin.committed, admin.ends = {first: 2, second: 8}, {first: 4, second: 10}
    tails.goes_on.set()
    offsets = GroupOffsets("", ["in"], 10)

    def lag() -> int:
        return offsets.lags(DEADLINE_S).lags["g", "in"]

    assert [lag(), lag()] == [2, 2]
    assert tails.asked == [{first, second}]
    admin.committed = {first: 3, second: 9}
    assert lag() == 0
    admin.committed = {first: 4, second: 9}  # Spark's reader commits the end itself
    assert lag() == 0
    assert tails.asked == [{first, second}]
    admin.ends[second] = 12
    assert [lag(), lag()] == [2, 2]
    assert tails.asked == [{first, second}, {second}]
    assert tails.calls.count("opened") == 1


def test_a_tail_that_was_not_read_in_time_is_read_again(admin: Admin, tails: Tails) -> None:
    tails.goes_on.set()
    tails.late = {PLACE}
    offsets = GroupOffsets("", ["in"], 10)
    assert offsets.lags(DEADLINE_S).lags == {("g", "in"): 1}
    tails.late = set()
    assert offsets.lags(DEADLINE_S).lags == {("g", "in"): 0}
    assert offsets.lags(DEADLINE_S).lags == {("g", "in"): 0}
    assert tails.asked == [{PLACE}, {PLACE}]


def test_the_tail_of_a_topic_that_was_gone_is_read_again(admin: Admin, tails: Tails) -> None:
    """It may have been made again with other records below the same end."""
    tails.goes_on.set()
    offsets = GroupOffsets("", ["in"], 10)
    offsets.lags(DEADLINE_S)
    admin.ends = {}
    assert offsets.lags(DEADLINE_S).lags == {}
    admin.ends = {PLACE: 4}
    offsets.lags(DEADLINE_S)
    assert tails.asked == [{PLACE}, {PLACE}]
