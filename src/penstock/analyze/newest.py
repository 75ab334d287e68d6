"""What the newest results tell, each second: how long their events took, and how far a query has come."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from penstock.event import SOURCE, TIME

_SAMPLE_MAX = 16  # of each partition: enough for a mean, little enough to cost nothing
_READ_S = 0.2

Place = tuple[str, int]
Ends = Mapping[Place, int]


class Reached(NamedTuple):
    """The event next to the last one of a partition of which a result was seen, and when that was written."""

    position: int
    written_ms: int


class Newest(NamedTuple):
    """What is known from the results of one topic."""

    latency_ms: dict[str, float] | None = None
    reached: Mapping[Place, Reached] = {}  # by the partitions that the query reads

    def since(self, began_ms: int) -> dict[Place, int]:
        """How far a query has come that began then; what an earlier run of it had reached is done again."""
        return {place: reached.position for place, reached in self.reached.items() if reached.written_ms >= began_ms}


class NewestResults:
    """Reads the newest results of topics; keeps the last word while nothing new comes."""

    def __init__(self, queue: str, topics: Sequence[str]) -> None:
        self.told: Mapping[str, Newest] = {}
        self._topics = topics
        self._seen: dict[Place, int] = {}
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": queue,
                "group.id": "penstock-latency",
                "enable.auto.commit": False,
                "queued.max.messages.kbytes": 1024,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )

    def sample(self, ends: Ends) -> None:
        """Look at what is new below `ends`."""
        new = {
            place: max(self._seen[place], end - _SAMPLE_MAX)
            for place, end in ends.items()
            if place[0] in self._topics and end > self._seen.setdefault(place, end)
        }
        self._seen |= {place: ends[place] for place in new}
        if not new:
            return
        found: dict[str, list[tuple[Mapping[str, bytes], int]]] = {}
        self._consumer.assign([TopicPartition(*place, start) for place, start in new.items()])
        left = sum(ends[place] - start for place, start in new.items())
        deadline = time.monotonic() + _READ_S
        while left > 0 and (wait := deadline - time.monotonic()) > 0:
            for message in self._consumer.consume(left, wait):
                left -= 1
                if message.error() is None:
                    result = dict(message.headers() or []), message.timestamp()[1]
                    found.setdefault(message.topic(), []).append(result)
        self._consumer.unassign()
        # As a whole: another thread reads it.
        self.told = {**self.told, **{topic: take(self.told.get(topic, Newest()), of) for topic, of in found.items()}}

    def close(self) -> None:
        self._consumer.close()


def take(before: Newest, results: Sequence[tuple[Mapping[str, bytes], int]]) -> Newest:
    """What is known after results, each with its headers and when it was written."""
    took, reached = [], dict(before.reached)
    fresh: dict[Place, Reached] = {}
    for headers, written_ms in results:
        if (accepted := headers.get(TIME) or b"").isdigit():
            took.append(max(0, written_ms - int(accepted)))
        if (source := _source(headers)) is not None:
            place, offset = source
            fresh[place] = max(fresh.get(place, Reached(0, 0)), Reached(offset + 1, written_ms))
    return Newest(summary(took) if took else before.latency_ms, reached | fresh)


def summary(took_ms: Sequence[int]) -> dict[str, float]:
    """Least, mean and most."""
    return {"min": min(took_ms), "avg": round(sum(took_ms) / len(took_ms), 1), "max": max(took_ms)}


def _source(headers: Mapping[str, bytes]) -> tuple[Place, int] | None:
    """TOPIC/PARTITION/OFFSET; None where anybody else wrote something there."""
    topic, *numbers = (headers.get(SOURCE) or b"").decode(errors="replace").rsplit("/", 2)
    if len(numbers) != 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    return (topic, int(numbers[0])), int(numbers[1])
