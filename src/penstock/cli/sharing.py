"""Reading as a member of a group: records of the partitions this member is given, committed once they were shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.cli.client import reason
from penstock.cli.damage import DAMAGED
from penstock.cli.standing import FULL
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message, TopicPartition


class Sharer:
    """What this member has, where each of its partitions ended, and what was shown since the last commit."""

    def __init__(self, consumer: Consumer, topic: str, wait_s: float, on_full: Callable[[], PenstockError]) -> None:
        """`on_full` says why a broker has no room for this member."""
        self._consumer = consumer
        self._topic = topic
        self._wait_s = wait_s
        self._on_full = on_full
        self._mine: dict[tuple[str, int], bool] = {}  # whether its end was seen
        self._shown: dict[tuple[str, int], int] = {}

    def records(
        self, until_end: bool, stop: Callable[[], bool], limit: int | None, on_damage: Callable[[int, int], int]
    ) -> Iterator[Message]:
        """Records until told to stop; positions are committed when there is nothing to show, and at the end."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        given = 0
        while not stop() and (limit is None or given < limit):
            if until_end and self._mine and all(self._mine.values()):
                break
            message = self._consumer.poll(0)
            if message is None:
                self._commit()
                message = self._consumer.poll(self._wait_s)
            if message is not None and (given_one := self._take(message, on_damage)) is not None:
                yield given_one
                given += 1
                self._shown[_place(given_one)] = int(given_one.offset() or 0) + 1
        self._commit()

    def _take(self, message: Message, on_damage: Callable[[int, int], int]) -> Message | None:
        from confluent_kafka import TopicPartition

        error = message.error()
        if error is None:
            self._mine[_place(message)] = False
            return message
        if error.name() in DAMAGED:
            topic, partition = _place(message)
            self._consumer.seek(TopicPartition(topic, partition, on_damage(partition, int(message.offset() or 0))))
        elif error.name() == "_PARTITION_EOF":
            self._mine[_place(message)] = True
        elif error.name() == FULL:
            raise self._on_full()
        elif not error.retriable():
            raise PenstockError(f"reading {self._topic} in a group failed: {reason(error)}")
        return None

    def _commit(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        sys.stdout.flush()  # a position says that its records were seen
        places = [TopicPartition(*place, offset) for place, offset in self._shown.items()]
        self._shown.clear()
        if places:
            try:
                self._consumer.commit(offsets=places, asynchronous=False)
            except KafkaException as error:
                # Another member has the partition by now, and shows these records again.
                if error.args[0].name() not in ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"):
                    raise

    def _on_assign(self, _: Any, places: list[TopicPartition]) -> None:
        self._mine |= {(place.topic, place.partition): False for place in places}

    def _on_revoke(self, _: Any, places: list[TopicPartition]) -> None:
        self._commit()
        self._on_lost(_, places)

    def _on_lost(self, _: Any, places: list[TopicPartition]) -> None:
        for place in places:
            self._mine.pop((place.topic, place.partition), None)
            self._shown.pop((place.topic, place.partition), None)


def _place(message: Message) -> tuple[str, int]:
    return str(message.topic()), int(message.partition() or 0)
