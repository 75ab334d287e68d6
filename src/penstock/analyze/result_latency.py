"""What the newest results tell, each second: how long their events took, and how far a query has come."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from penstock.analyze.processing import Looks, add_look
from penstock.client.factory import client_settings
from penstock.events.headers import SOURCE, TIME
from penstock.events.query_status import Spread
from penstock.kafka.target import KafkaTarget

_SAMPLE_MAX = 16  # of each partition: enough for a mean, little enough to cost nothing
_READ_S = 0.2
_STAIRS_MAX = 8  # runs of a query each of which got less far than the one before; or results that a shuffle mixed
_DIGITS_MAX = 18  # anybody may write headers

Place = tuple[str, int]
Ends = Mapping[Place, int]
Result = tuple[Mapping[str, bytes], int]  # its headers, and when it was written


class Reached(NamedTuple):
    """The event next to one of which a result was seen, and when that result was written."""

    position: int
    written_ms: int


Stairs = tuple[Reached, ...]  # the later written, the less far: an earlier run of the query may have got further


class Newest(NamedTuple):
    """What is known from the results of one topic."""

    latency_ms: Spread | None = None
    reached: Mapping[Place, Stairs] = {}  # by the partitions that the query reads
    minute: Looks = ()  # what the results of the last minute took

    def since(self, began_ms: int) -> dict[Place, int]:
        """How far a query has come that began then; what an earlier run of it had reached is done again."""
        found = {
            place: [reached.position for reached in stairs if reached.written_ms >= began_ms]
            for place, stairs in self.reached.items()
        }
        return {place: max(positions) for place, positions in found.items() if positions}


class NewestResults:
    """Reads the newest results of topics; keeps the last word while nothing new comes."""

    def __init__(self, queue: KafkaTarget, topics: Sequence[str]) -> None:
        self.told: Mapping[str, Newest] = {}
        self._topics = topics
        self._seen: dict[Place, int] = {}
        self._consumer: Any = Consumer(
            client_settings(queue)
            | {
                "group.id": "penstock-newest",
                "enable.auto.commit": False,
                "enable.partition.eof": True,  # the last offsets may be the end of a transaction, which nobody is given
                "queued.max.messages.kbytes": 1024,
            }
        )

    def sample(self, ends: Ends, now_ms: int) -> None:
        """Look at what is new below `ends`; `now_ms` is read from a steady clock."""
        new = {
            place: max(self._seen[place], end - _SAMPLE_MAX)
            for place, end in ends.items()
            if place[0] in self._topics and end > self._seen.setdefault(place, end)
        }
        if new:
            found = self._read(new, ends)
            told = {topic: take(self.told.get(topic, Newest()), of, now_ms) for topic, of in found.items()}
            self.told = {**self.told, **told}  # as a whole: another thread reads it

    def _read(self, new: Mapping[Place, int], ends: Ends) -> dict[str, list[Result]]:
        """By topic, from each place on up to its end; what does not come in time is read with the next look."""
        found: dict[str, list[Result]] = {}
        left = dict(new)
        self._consumer.assign([TopicPartition(*place, start) for place, start in new.items()])
        deadline = time.monotonic() + _READ_S
        while left and (wait := deadline - time.monotonic()) > 0:
            for message in self._consumer.consume(sum(ends[place] - at for place, at in left.items()), wait):
                place, error = (message.topic(), message.partition()), message.error()
                if error is None:
                    self._seen[place] = message.offset() + 1
                    found.setdefault(place[0], []).append((dict(message.headers() or []), message.timestamp()[1]))
                elif error.name() == "_PARTITION_EOF":
                    self._seen[place] = max(self._seen[place], ends[place])
            left = {place: max(at, self._seen[place]) for place, at in left.items() if self._seen[place] < ends[place]}
        self._consumer.unassign()
        return found

    def close(self) -> None:
        self._consumer.close()


def take(before: Newest, results: Sequence[Result], now_ms: int) -> Newest:
    """What is known after more results, read at `now_ms` of a steady clock.

    The timestamps of results do not date a look: one result from the future would outlive all later looks.
    """
    took, reached = [], dict(before.reached)
    for headers, written_ms in sorted(results, key=lambda result: result[1]):
        if (accepted_ms := _number(headers.get(TIME))) is not None:
            took.append(max(0, written_ms - accepted_ms))
        if (source := _source(headers)) is not None:
            place, offset = source
            reached[place] = _climb(reached.get(place, ()), Reached(offset + 1, written_ms))
    if not took:
        return Newest(before.latency_ms, reached, before.minute)
    return Newest(summary(took), reached, add_look(before.minute, now_ms, took))


def _climb(stairs: Stairs, reached: Reached) -> Stairs:
    """Whoever got less far, and earlier, tells nothing any more."""
    higher = [step for step in stairs if step.position > reached.position]
    return (*higher[: _STAIRS_MAX - 1], reached)


def summary(took_ms: Sequence[int]) -> Spread:
    """Least, mean and most."""
    return Spread(min(took_ms), round(sum(took_ms) / len(took_ms), 1), max(took_ms))


def _source(headers: Mapping[str, bytes]) -> tuple[Place, int] | None:
    """TOPIC/PARTITION/OFFSET; None where anybody else wrote something there."""
    topic, *words = (headers.get(SOURCE) or b"").rsplit(b"/", 2)
    partition, offset = map(_number, words) if len(words) == 2 else (None, None)
    if partition is None or offset is None:
        return None
    return (topic.decode(errors="replace"), partition), offset


def _number(text: bytes | None) -> int | None:
    return int(text) if text and text.isdigit() and len(text) <= _DIGITS_MAX else None
