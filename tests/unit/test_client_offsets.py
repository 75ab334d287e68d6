"""librdkafka's negative offsets: -1001 is unknown, -1 is the answer to a time after the last record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.analyze.failures import AwayError
from penstock.analyze.queue_probe import Queue
from penstock.cli import topic_description as description
from penstock.cli.shared import group_offsets as standing
from penstock.client.offsets import is_unknown, offset_range, offsets_at_time
from penstock.kafka.target import KafkaTarget

UNKNOWN = -1001


class Client:
    """An AdminClient or Consumer that answers every question with these offsets."""

    def __init__(self, *offsets: int, error: KafkaError | None = None) -> None:
        self._offsets = offsets
        self._error = error

    def list_offsets(self, asked: Iterable[TopicPartition], **_: Any) -> dict[TopicPartition, Future[Any]]:
        return {place: self._told(offset) for place, offset in zip(asked, self._offsets, strict=True)}

    def _told(self, offset: int) -> Future[Any]:
        told: Future[Any] = Future()
        if self._error is None:
            told.set_result(SimpleNamespace(offset=offset))
        else:
            told.set_exception(KafkaException(self._error))
        return told

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions=range(len(self._offsets)))})

    def get_watermark_offsets(self, _: TopicPartition, timeout: float) -> tuple[int, ...] | None:
        return self._offsets or None

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[Any]:
        return [
            SimpleNamespace(partition=place.partition, offset=offset, error=self._error)
            for place, offset in zip(asked, self._offsets, strict=True)
        ]


def test_only_the_answer_to_a_time_may_be_minus_one() -> None:
    assert [is_unknown(offset) for offset in (0, 7, -1, UNKNOWN)] == [False, False, True, True]
    assert [is_unknown(offset, of_time=True) for offset in (0, -1, UNKNOWN)] == [False, False, True]


def queue_of(client: Client, partitions: int) -> Queue:
    queue = Queue(KafkaTarget.parse("127.0.0.1:1"))
    queue._admin = client  # type: ignore[assignment]
    queue._partitions = {"t": partitions}
    return queue


def test_one_unknown_partition_leaves_the_ends_of_the_others() -> None:
    assert queue_of(Client(7, UNKNOWN), 2).ends(["t"]) == {("t", 0): 7}


def test_a_checkpoint_is_not_compared_with_an_unknown_offset() -> None:
    with pytest.raises(AwayError, match="t/1"):
        queue_of(Client(7, UNKNOWN), 2).ranges(["t"])


def test_a_partition_that_is_gone_is_not_waited_for() -> None:
    gone = Client(0, error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    assert queue_of(gone, 1).ranges(["t"]) == {}


@pytest.mark.parametrize("client", [Client(), Client(UNKNOWN, UNKNOWN), Client(0, UNKNOWN)])
def test_an_unknown_range_is_an_error(client: Client) -> None:
    with pytest.raises(KafkaException):
        offset_range(client, "t", 0, 1)


def test_an_unknown_offset_of_a_time_is_an_error() -> None:
    assert offsets_at_time(Client(3, -1), "t", [0, 1], 5, 1) == {0: 3, 1: None}
    for client in (Client(3, UNKNOWN), Client(3, -1, error=KafkaError(KafkaError.LEADER_NOT_AVAILABLE))):
        with pytest.raises(KafkaException):
            offsets_at_time(client, "t", [0, 1], 5, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: description._offsets(client, "t", [0]),
        lambda client: standing._bounds(client, [("t", 0)]),
    ],
)
def test_a_command_prints_no_unknown_offset(ask: Callable[[Any], object]) -> None:
    with pytest.raises(KafkaException):
        ask(Client(UNKNOWN))
