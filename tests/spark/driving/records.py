"""Sends events and reads results as plain Kafka clients do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

WITHIN_S = 240.0


class Record(NamedTuple):
    """What a reader got."""

    key: str | None
    value: bytes | None
    headers: dict[str, str]

    @property
    def json(self) -> dict[str, Any]:
        assert self.value is not None
        found: dict[str, Any] = json.loads(self.value)
        return found


def send(queue: str, topic: str, events: Sequence[dict[str, Any] | bytes | None], id: str | None = "id") -> None:
    """Store events durably; `id` names the field whose text becomes the header penstock-id."""
    producer = Producer({"bootstrap.servers": queue, "linger.ms": 1, "acks": "all"})
    for event in events:
        value = json.dumps(event).encode() if isinstance(event, dict) else event
        headers: Any = [("penstock-id", str(event[id]).encode())] if isinstance(event, dict) and id else None
        key = event.get("card") if isinstance(event, dict) else None
        producer.produce(topic, value, key=key, headers=headers)
    assert producer.flush(WITHIN_S) == 0


class Reader:
    """Reads a topic from its beginning."""

    def __init__(self, queue: str, topic: str) -> None:
        settings = {"bootstrap.servers": queue, "group.id": "test", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "enable.partition.eof": True, "isolation.level": "read_committed"})
        self._on_end: Callable[[int], None] = lambda _: None
        told = self._consumer.list_topics(topic, timeout=30).topics[topic]
        assert told.partitions, f"{topic} has no partitions: {told.error}"
        partitions = told.partitions
        self._consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        self.records: list[Record] = []

    def until(self, done: Callable[[list[Record]], bool]) -> list[Record]:
        """Read until `done` of everything read so far."""
        deadline = time.monotonic() + WITHIN_S
        while not done(self.records):
            assert time.monotonic() < deadline, f"{self.records[-5:]} {self._state()}"
            # Many at a time: `done` looks at all of them each time.
            for message in self._consumer.consume(500, 0.2):
                if (error := message.error()) is not None:
                    if error.name() == "_PARTITION_EOF":
                        self._on_end(message.partition() or 0)
                else:
                    key, headers = message.key(), message.headers() or []
                    self.records.append(
                        Record(key.decode() if key else None, message.value(), {n: v.decode() for n, v in headers})
                    )
        return self.records

    def _state(self) -> list[str]:
        """Where it stands, and from where to where the broker says that there are records."""
        places = self._consumer.position(self._consumer.assignment())
        return [f"{place} of {self._consumer.get_watermark_offsets(place, timeout=30)}" for place in places]

    def to_end(self) -> list[Record]:
        """Read all that is committed, in a topic to which nobody writes any more."""
        open_partitions = {place.partition for place in self._consumer.assignment()}

        def at_end(_: list[Record]) -> bool:
            return not open_partitions

        self._on_end = open_partitions.discard
        return self.until(at_end)

    def close(self) -> None:
        self._consumer.close()


@contextmanager
def reading(queue: str, topic: str) -> Iterator[Reader]:
    """A reader that is closed afterwards."""
    reader = Reader(queue, topic)
    try:
        yield reader
    finally:
        reader.close()


def read(queue: str, topic: str, done: Callable[[list[Record]], bool]) -> list[Record]:
    """Everything in a topic, once `done` of it."""
    with reading(queue, topic) as reader:
        return reader.until(done)


def stored(queue: str, topic: str) -> int:
    """How many offsets a topic has given out."""
    consumer = Consumer({"bootstrap.servers": queue, "group.id": "test", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=30)[1] for n in partitions]
        return sum(ends)
    finally:
        consumer.close()
