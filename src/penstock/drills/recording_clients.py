"""Real clients for drills: they make topics, write, and read in threads of their own, and record what they saw."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without types

from penstock.assure.checker import check
from penstock.assure.history import Assign, End, Event, Outcome, Poll, Send, Settle, decode_history, encode_event
from penstock.assure.verdict import Verdict
from penstock.client.factory import reader_settings
from penstock.client.offsets import offset_range
from penstock.client.record import Record, record_of
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget


class Recording(Protocol):
    """Whoever takes events down."""

    def record(self, event: Event, /) -> None: ...


class Recorder:
    """Events in the order in which they were recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb", buffering=1024 * 1024)
        self._lock = threading.Lock()

    def record(self, event: Event) -> None:
        line = encode_event(event)
        with self._lock:
            self._file.write(line)

    def events(self) -> Iterator[Event]:
        """All that was recorded so far."""
        with self._lock:
            self._file.flush()
        with self.path.open("rb") as lines:
            yield from decode_history(lines)

    def verdict(self) -> Verdict:
        return check(self.events())

    def close(self) -> None:
        with self._lock:
            self._file.close()


UNSETTLED_MAX = 2_000
SETTLE_WITHIN_S = 60.0
READ_WITHIN_S = 60.0
# The broker is away for a second at a time: look for it often, and give nothing up meanwhile.
PATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "socket.keepalive.enable": True,
    "log_level": 0,
}
# Values are recorded without it: a history of millions must stay readable.
PADDING = "."
_NO_TROUBLE = (KafkaError._PARTITION_EOF,)


class Place(NamedTuple):
    """One partition."""

    topic: str
    partition: int


class RecordingProducer:
    """Sends numbered values and records what became of each."""

    def __init__(
        self, name: str, address: str, recorder: Recording, *, idempotent: bool = True, **settings: object
    ) -> None:
        self.name = name
        self.recorder = recorder
        self.acked = 0
        self.troubles: list[str] = []
        self._life = name if idempotent else None
        self._sent = 0
        self._settled = 0
        self._client = Producer(
            {
                "bootstrap.servers": address,
                "client.id": name,
                "enable.idempotence": idempotent,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": int(SETTLE_WITHIN_S * 1000),
                "retry.backoff.ms": 20,
                "retry.backoff.max.ms": 200,
                "error_cb": self._on_error,
                **PATIENT,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )

    def send(self, place: Place, size: int = 0) -> str:
        """Record and send the next value, padded to `size`; waits while too many are unsettled."""
        while self.unsettled >= UNSETTLED_MAX:
            self._client.poll(0.05)
        value = f"{self.name}-{self._sent}"
        padded = value + PADDING * (size - len(value))
        self.recorder.record(Send(self.name, place.topic, place.partition, value, self._life))
        while True:
            try:
                self._client.produce(place.topic, padded, partition=place.partition, on_delivery=self._on_delivery)
                break
            except BufferError:
                self._client.poll(0.05)
        self._sent += 1
        self._client.poll(0)
        return value

    @property
    def unsettled(self) -> int:
        """Sends without an outcome so far."""
        return self._sent - self._settled

    def wait(self, seconds: float) -> None:
        """Let acknowledgements come in."""
        self._client.poll(seconds)

    def settle(self, within_s: float = SETTLE_WITHIN_S) -> None:
        """Wait until every send has an outcome; PenstockError if one has none in time."""
        left = self._client.flush(within_s)
        if left:
            raise PenstockError(f"{left} sends of {self.name} had no outcome after {within_s:.0f} s")

    def abandon(self) -> None:
        """Give up everything unsettled: its outcome stays unknown."""
        self._client.purge()
        self._client.flush(5)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        self._settled += 1
        value, topic, partition = message.value(), message.topic(), message.partition()
        if value is None or topic is None or partition is None:
            raise PenstockError("a delivery report does not say what was delivered")
        offset = message.offset()
        outcome = Outcome.OK if error is None else _outcome(error)
        at = offset if error is None and offset is not None and offset >= 0 else None
        self.acked += outcome is Outcome.OK
        if error is not None:
            self.troubles.append(error.str())
        self.recorder.record(Settle(self.name, topic, partition, _name(value), outcome, at))

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self.troubles.append(f"fatal: {error.str()}")


def _name(value: bytes) -> str:
    return value.decode().rstrip(PADDING)


def _outcome(error: KafkaError) -> Outcome:
    """Only what the broker refused before it stored anything has failed for certain."""
    refused = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_RECORD)
    return Outcome.FAIL if error.code() in refused else Outcome.UNKNOWN


class RecordingConsumer:
    """Follows partitions from their beginning and records every answer."""

    def __init__(self, name: str, address: str, recorder: Recording, places: list[Place], **settings: object) -> None:
        self.name = name
        self.recorder = recorder
        self.read = 0
        self.troubles: list[str] = []
        self.positions = dict.fromkeys(places, 0)
        self.client: Any = Consumer(
            {
                "bootstrap.servers": address,
                "client.id": name,
                "group.id": name,
                "enable.auto.commit": False,
                # Nothing is trimmed: an offset out of range means that the log has lost something.
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 100,
                "fetch.error.backoff.ms": 20,
                "error_cb": _ignore,
                **PATIENT,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        committed = settings.get("isolation_level") == "read_committed"
        for place in places:
            recorder.record(Assign(name, 1, place.topic, place.partition, 0, committed))
        self.client.assign([TopicPartition(*place, 0) for place in places])

    def poll(self, seconds: float) -> int:
        """Record what came within `seconds`; how many records."""
        found: dict[Place, list[tuple[int, str]]] = {}
        for message in self.client.consume(1000, seconds):
            error = message.error()
            if error is None:
                records = found.setdefault(Place(message.topic(), message.partition()), [])
                records.append((message.offset(), _name(message.value())))
            elif error.code() in _NO_TROUBLE:
                place = Place(message.topic(), message.partition())
                self.positions[place] = max(self.positions[place], message.offset())
            else:
                self.troubles.append(error.str())
        for place, records in found.items():
            self.positions[place] = max(self.positions[place], records[-1][0] + 1)
            self.recorder.record(Poll(self.name, 1, *place, tuple(records)))
        count = sum(map(len, found.values()))
        self.read += count
        return count

    def close(self) -> None:
        self.client.close()


def read_all(name: str, address: str, recorder: Recording, places: list[Place], **settings: object) -> None:
    """The final read: each partition from its beginning to its end, as one assignment; PenstockError if it stalls."""
    # Where a log ends with markers, only the end of the partition tells that all was read.
    reader = RecordingConsumer(name, address, recorder, places, enable_partition_eof=True, **settings)
    try:
        ends = {place: _end_of(reader.client, place) for place in places}
        deadline = time.monotonic() + READ_WITHIN_S
        while any(_position(reader, place) < end for place, end in ends.items()):
            if reader.poll(0.2):
                deadline = time.monotonic() + READ_WITHIN_S
            if time.monotonic() > deadline:
                raise PenstockError(f"the final read stalled at {reader.positions} of {ends}: {reader.troubles}")
        for place, end in ends.items():
            recorder.record(End(name, 1, *place, end))
    finally:
        reader.close()


def _position(reader: RecordingConsumer, place: Place) -> int:
    # Where a log ends with a batch without records, only the client itself knows that it is past it.
    known: int = reader.client.position([TopicPartition(*place)])[0].offset
    return max(reader.positions[place], known)


def _end_of(client: Any, place: Place) -> int:
    for _ in range(6):
        try:
            return offset_range(client, *place, 5)[1]
        except KafkaException:
            continue
    raise PenstockError(f"nobody says where {place.topic}/{place.partition} ends")


def _ignore(_: KafkaError) -> None:
    """That the broker is away is what a drill is about."""


class Worker:
    """Runs `turn` again and again in a thread until stopped; what it raised is raised by `join`."""

    def __init__(self, name: str, turn: Callable[[], object]) -> None:
        self._turn = turn
        self._failure: BaseException | None = None
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_stopping.is_set():
                self._turn()
        except BaseException as failure:  # noqa: BLE001  # the top of a thread: handed to who joins it
            self._failure = failure

    def stop(self) -> None:
        self._is_stopping.set()

    def join(self) -> None:
        self.stop()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def create_topic(address: str, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    admin.create_topics([wanted])[name].result(60)


def delete_topic(address: str, name: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.delete_topics([name])[name].result(60)


_TIMEOUT_S = 30.0
_WITHOUT_RECORDS_S = 60.0


def read_topic(queue: str, topic: str) -> Iterator[Record]:
    """Every record that the topic holds now, partition by partition in the order of offsets."""
    consumer = Consumer(reader_settings(KafkaTarget.parse(queue), buffered_kib=65_536))
    try:
        found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        for partition in sorted(found.partitions):
            low, high = offset_range(consumer, topic, partition, _TIMEOUT_S)
            if low < high:
                consumer.assign([TopicPartition(topic, partition, low)])
                yield from _read(consumer, topic, high)
    except KafkaException as error:
        raise PenstockError(f"{topic} could not be read: {error}") from None
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, high: int) -> Iterator[Record]:
    came = time.monotonic()
    while time.monotonic() - came < _WITHOUT_RECORDS_S:
        for message in consumer.consume(10_000, timeout=0.1):
            came = time.monotonic()
            fault = message.error()
            offset = message.offset() or 0
            if fault is None:
                yield record_of(message)
            if offset >= high - 1 or (fault is not None and fault.name() == "_PARTITION_EOF" and offset >= high):
                return
    raise PenstockError(f"{topic} could not be read to its end at {high}")
