"""confluent-kafka (librdkafka) in the storm."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from penstock.assure.history import Outcome
from penstock.drills.recording_clients import PATIENT, Place
from penstock.errors import PenstockError
from proof.storm.client_library import (
    BACKOFF_MS,
    DELIVERY_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    TRANSACTION_MS,
    OnPlaces,
    OnSettle,
    Reading,
    Records,
)

# A transaction's end that takes longer is given up, and the client begins a new life.
ANSWER_S = 10.0
POLLED_MAX = 200


class ConfluentWriting:
    """A producer, as `Writing` says."""

    def __init__(self, address: str, name: str, on_settle: OnSettle, owner: str | None) -> None:
        self._on_settle = on_settle
        settings: dict[str, Any] = {
            "bootstrap.servers": address,
            "client.id": name,
            "enable.idempotence": True,
            "linger.ms": 2,
            "compression.type": "lz4",
            "retry.backoff.ms": BACKOFF_MS,
            "error_cb": self._on_error,
            **PATIENT,
        }
        if owner is None:
            settings |= {"message.timeout.ms": DELIVERY_MS}
        else:
            settings |= {"transactional.id": owner, "transaction.timeout.ms": TRANSACTION_MS}
        self._client = Producer(settings)
        self._fatal: str | None = None
        if owner is not None:
            self._client.init_transactions(3 * ANSWER_S)

    def send(self, place: Place, value: str) -> None:
        told = partial(self._on_delivery, place, value)
        self._client.produce(place.topic, value.encode(), partition=place.partition, on_delivery=told)
        self.turn(0)

    def turn(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._client.poll(max(0.0, until - time.monotonic())) and time.monotonic() < until:
            pass
        if self._fatal is not None:
            raise PenstockError(f"fatal: {self._fatal}")

    def flush(self, seconds: float) -> None:
        left = self._client.flush(seconds)
        if left:
            raise PenstockError(f"{left} sends had no outcome after {seconds:.0f} s")

    def begin(self) -> None:
        self._client.begin_transaction()

    def send_positions(self, positions: Mapping[Place, int], reader: Reading) -> None:
        where = [TopicPartition(*place, offset) for place, offset in positions.items()]
        consumer: Any = reader
        self._client.send_offsets_to_transaction(where, consumer.client.consumer_group_metadata(), ANSWER_S)

    def commit(self) -> None:
        self._client.commit_transaction(ANSWER_S)

    def abort(self) -> None:
        self._client.abort_transaction(ANSWER_S)

    def _on_delivery(self, place: Place, value: str, error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        outcome = Outcome.OK if error is None else Outcome.UNKNOWN
        self._on_settle(place, value, outcome, offset if error is None and offset is not None and offset >= 0 else None)

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = error.str()


class ConfluentReading:
    """A consumer, as `Reading` says."""

    def __init__(self, address: str, name: str, group: str, committed: bool, newer: bool) -> None:
        self.group = group
        settings: dict[str, Any] = {
            "bootstrap.servers": address,
            "client.id": name,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": BACKOFF_MS,
            "error_cb": _ignore,
            **PATIENT,
        }
        if newer:
            settings |= {"group.protocol": "consumer"}
        else:
            settings |= {
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": "roundrobin",
            }
        self.client: Any = Consumer(settings)
        self._found: dict[Place, Records] = {}

    def subscribe(self, topics: Sequence[str], on_given: OnPlaces, on_taken: OnPlaces) -> None:
        def given(_: Any, parts: list[TopicPartition]) -> None:
            on_given(_places(parts))

        def taken(_: Any, parts: list[TopicPartition]) -> None:
            places = _places(parts)
            # What was polled in the same turn belongs to somebody else by now.
            for place in places:
                self._found.pop(place, None)
            on_taken(places)

        self.client.subscribe(list(topics), on_assign=given, on_revoke=taken, on_lost=taken)

    def assign(self, positions: Mapping[Place, int]) -> None:
        self.client.assign([TopicPartition(*place, offset) for place, offset in positions.items()])

    def poll(self, seconds: float) -> dict[Place, Records]:
        self._found = {}
        until = time.monotonic() + seconds
        for _ in range(POLLED_MAX):
            message = self.client.poll(max(0.0, until - time.monotonic()) if not self._found else 0)
            if message is None:
                break
            error = message.error()
            if error is None:
                place = Place(message.topic(), message.partition())
                self._found.setdefault(place, []).append((message.offset(), message.value().decode()))
            elif error.fatal() or error.code() == KafkaError._MAX_POLL_EXCEEDED:
                raise KafkaException(error)
        return self._found

    def commit(self, positions: Mapping[Place, int]) -> None:
        where = [TopicPartition(*place, offset) for place, offset in positions.items()]
        for part in self.client.commit(offsets=where, asynchronous=False) or ():
            if part.error is not None:
                raise KafkaException(part.error)

    def position_of_group(self, place: Place) -> int | None:
        (found,) = self.client.committed([TopicPartition(*place)], ANSWER_S)
        return found.offset if found.offset >= 0 else None

    def close(self) -> None:
        self.client.close()


def write(address: str, name: str, on_settle: OnSettle, owner: str | None = None) -> ConfluentWriting:
    return ConfluentWriting(address, name, on_settle, owner)


def read(address: str, name: str, group: str, *, committed: bool = False, newer: bool = False) -> ConfluentReading:
    return ConfluentReading(address, name, group, committed, newer)


def _places(parts: Sequence[TopicPartition]) -> list[Place]:
    return [Place(part.topic, part.partition) for part in parts]


def _ignore(_: KafkaError) -> None:
    """That the broker is away is what a storm is about."""
