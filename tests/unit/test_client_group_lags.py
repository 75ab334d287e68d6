"""The lags of groups, asked in one thread and closed in another."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from penstock.client import group_lags
from penstock.client.group_lags import GroupOffsets
from penstock.errors import PenstockError

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
        return {group.group_id: answer(topic_partitions=[TopicPartition(*PLACE, 3)]) for group in groups}

    def list_offsets(self, places: Mapping[TopicPartition, Any], **_: Any) -> Mapping[TopicPartition, Future[Any]]:
        return {place: answer(offset=4) for place in places}


class Tails:
    """A TailReader whose reads last until `goes_on` is set."""

    def __init__(self) -> None:
        self.is_read, self.goes_on = threading.Event(), threading.Event()
        self.calls: list[str] = []

    def open(self, queue: str) -> Tails:
        self.calls.append("opened")
        return self

    def record_ends(self, ends: Mapping[tuple[str, int], int], within_s: float) -> dict[tuple[str, int], int]:
        self.is_read.set()
        self.goes_on.wait(DEADLINE_S)
        self.calls.append("read")
        return {place: end - 1 for place, end in ends.items()}

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
    offsets = GroupOffsets("", ["in"], 10)
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
    offsets = GroupOffsets("", ["in"], 10)
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
