"""Puts events into the queue for asyncio: one connection for topics with the same settings, reports on the loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.client.factory import producer_settings
from penstock.client.topic_writes import TopicWrites
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan, TopicPlan

# Reports are taken on the loop itself: librdkafka's callbacks take Python's lock once a message, and from a thread of
# their own they would queue for it behind a busy loop. Measured: 189,000 events/s so, 80,000 to 143,000 with a thread.
TURN_S = 0.001
# What comes while a group of events is under way is held, to go together when that is acknowledged, or soon anyway:
# librdkafka's thread spins for as long as it has events that it may not send yet.
TURNS_HELD = 50  # a partition that hangs delays the others by so much
EVENTS_HELD = 2_000
LINGER_MS = 0
MESSAGES_MAX = 500_000
CLOSE_WITHIN_S = 10.0
# A queue refuses a batch that is larger than max.message.bytes of the topic, and librdkafka does not split it.
# batch.size bounds a batch of several events; librdkafka sends a single event whatever its size.
BATCH_BYTES = 1_000_000
MESSAGE_BYTES_MIN, MESSAGE_BYTES_MAX = 1_000, 1_000_000_000  # what librdkafka allows
MESSAGE_SLACK = 1_024  # librdkafka's estimate of an event's size is above what it sends

Report = Callable[[int, Any, Any], None]
Sendable = tuple[bytes, bytes | None, Any]  # value, key, headers: a list of event.Headers
Note = Callable[[str, str], None]


class _Settings(NamedTuple):
    acks: str
    retries: int
    is_idempotent: bool
    bytes_max: int | None  # of a batch; None: the queue has not told it


class EventProducer:
    """Sends events and tells what became of each. All calls and all reports are on the loop's thread."""

    def __init__(
        self,
        queue: KafkaTarget,
        plan: Plan,
        *,
        deadline_ms: int,
        buffer_bytes_max: int,
        limit: Callable[[str], int | None] = lambda topic: None,
        note: Note = lambda event, detail: None,
    ) -> None:
        """Topics with the same settings share a connection; nothing is kept for longer than `deadline_ms`.

        `limit` gives the largest batch that a topic takes; `set_limit` changes it. Events of a topic whose limit
        changes wait until those under way have ended, which takes `deadline_ms` at most, and then have as long.
        """
        self._queue = queue
        self._deadline_ms = deadline_ms
        self._buffer_bytes_max = buffer_bytes_max
        self._note = note
        self._settings = {name: _settings(topic, limit(name)) for name, topic in plan.topics.items()}
        self._changes: dict[str, _Settings] = {}
        self._producers: dict[_Settings, Producer] = {}
        self._broken: set[_Settings] = set()
        self._writes = TopicWrites()
        self._was_away = False
        self._retired: list[Producer] = []
        self._loop = asyncio.get_running_loop()
        self._held: list[tuple[str, Sequence[Sendable], Report]] = []
        self._held_events = 0
        self._held_turns = 0
        self._timer: asyncio.TimerHandle | None = None
        for topic in dict.fromkeys(door.topic for door in plan.doors.values()):
            self._producer(topic)  # connected before the first event comes

    def send(self, topic: str, events: Sequence[Sendable], on_report: Report) -> None:
        """Hand over events in their order; for each `on_report(number, error, message)` is called once, on the loop."""
        if self._timer is not None:
            self._held.append((topic, events, on_report))
            self._held_events += len(events)
            return
        self._produce(topic, events, on_report)
        self._timer = self._loop.call_later(TURN_S, self._turn)

    def set_limit(self, topic: str, bytes_max: int) -> None:
        """The largest batch that a topic takes. What is under way ends first, so that events stay in their order."""
        self._changes[topic] = self._settings[topic]._replace(bytes_max=bytes_max)
        if self._timer is None:
            self._change()

    def _change(self) -> None:
        changed, self._changes = self._changes, {}
        self._settings |= changed
        used = set(self._settings.values())
        self._retired += [producer for settings, producer in self._producers.items() if settings not in used]
        self._producers = {settings: producer for settings, producer in self._producers.items() if settings in used}
        for topic in changed:
            self._producer(topic)

    def _produce(self, topic: str, events: Sequence[Sendable], on_report: Report) -> None:
        produce, writes = self._producer(topic).produce, self._writes

        def report(number: int, error: Any, message: Any) -> None:
            # 0.1 us an event.
            if error is not None:
                partition = None if message is None else message.partition()  # None, too, if it was not chosen yet
                writes.failed(
                    topic, -1 if partition is None else partition, error.name(), error.str(), self._loop.time()
                )
            elif writes:
                writes.stored(topic, message.partition())
            on_report(number, error, message)

        for number, (value, key, headers) in enumerate(events):
            try:
                produce(topic, value, key, on_delivery=partial(report, number), headers=headers)
            except BufferError:
                report(number, KafkaError(KafkaError._QUEUE_FULL), None)
            except KafkaException as error:
                report(number, error.args[0], None)

    def _producer(self, topic: str) -> Producer:
        settings = self._settings[topic]
        if settings in self._broken:
            # A fatal error is for good: another takes its place, and what it had is reported as failed.
            self._broken.discard(settings)
            if (broken := self._producers.pop(settings, None)) is not None:
                broken.purge()
                self._retired.append(broken)
        producer = self._producers.get(settings)
        if producer is None:
            producer = self._producers[settings] = Producer(self._configuration(settings))
        return producer

    def _configuration(self, settings: _Settings) -> dict[str, Any]:
        bytes_max = settings.bytes_max or self._buffer_bytes_max

        def on_error(error: KafkaError) -> None:
            if error.fatal():
                self._broken.add(settings)
            self._note("queue_trouble", error.str())

        return producer_settings(self._queue) | {
            "client.id": f"penstock-edge-{os.getpid()}",
            "acks": settings.acks,
            "retries": settings.retries,
            "enable.idempotence": settings.is_idempotent,
            "batch.size": min(BATCH_BYTES, bytes_max),
            "message.max.bytes": min(max(MESSAGE_BYTES_MIN, bytes_max + MESSAGE_SLACK), MESSAGE_BYTES_MAX),
            "delivery.timeout.ms": self._deadline_ms,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": MESSAGES_MAX,
            "queue.buffering.max.kbytes": self._buffer_bytes_max // 1024,
            "reconnect.backoff.max.ms": 1000,
            "socket.nagle.disable": True,
            "error_cb": on_error,
        }

    def _turn(self) -> None:
        self._timer = self._loop.call_later(TURN_S, self._turn)
        may_hold = self._held_turns < TURNS_HELD and self._held_events < EVENTS_HELD
        if self._take_reports() and (self._changes or self._held) and may_hold:
            self._held_turns += 1
            return
        if self._changes and not any(self._is_under_way(topic) for topic in self._changes):
            self._change()
        held, self._held = self._held, []
        self._held_events = self._held_turns = 0
        for sent in held:
            if sent[0] in self._changes:  # until what is under way has ended; the others do not wait for it
                self._held.append(sent)
            else:
                self._produce(*sent)
        if not self._held and not any(map(len, self._all)):
            self._timer.cancel()
            self._timer = None

    def _is_under_way(self, topic: str) -> bool:
        producer = self._producers.get(self._settings[topic])
        return producer is not None and len(producer) > 0

    @property
    def _all(self) -> list[Producer]:
        return [*self._producers.values(), *self._retired]

    def _take_reports(self) -> int:
        """Call back for what was acknowledged; how much is still under way."""
        unreported = 0
        for producer in self._all:
            producer.poll(0)
            unreported += len(producer)
        self._retired = [producer for producer in self._retired if len(producer)]
        return unreported

    async def topic_faults(self, names: Sequence[str], timeout_s: float) -> list[str]:
        """A sentence for each of these topics that is missing or cannot be written; PenstockError: no answer."""

        def ask() -> list[str]:
            asking = next(iter(self._producers.values()), None)
            if asking is None:  # an app without doors
                asking = Producer(producer_settings(self._queue))
            return metadata_faults(asking.list_topics(timeout=timeout_s).topics, names)

        try:
            found = await self._loop.run_in_executor(None, ask)
        except KafkaException as error:
            self._was_away = True
            raise PenstockError(f"the queue does not answer: {error.args[0].str()}") from None
        if self._was_away:
            self._was_away = False
            self._writes.forget()
        return found + self._writes.sentences(self._loop.time())

    async def close(self) -> None:
        """Wait for what is under way, up to a bound; what is then left is reported as failed."""
        deadline = self._loop.time() + CLOSE_WITHIN_S
        while self._timer is not None and self._loop.time() < deadline:
            await asyncio.sleep(TURN_S)
        for producer in self._all:
            producer.purge()
            producer.poll(0)
        for _, events, on_report in self._held:
            for number in range(len(events)):
                on_report(number, KafkaError(KafkaError._PURGE_QUEUE), None)
        if self._timer is not None:
            self._timer.cancel()


def _settings(topic: TopicPlan, bytes_max: int | None) -> _Settings:
    policy = topic.policy.ingest
    return _Settings(policy.acks.value.value, policy.retries.value, policy.idempotent.value, bytes_max)


def metadata_faults(there: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """What the queue's own list of topics says: which are missing, or have partitions without a leader."""
    faults = []
    if missing := [name for name in names if name not in there]:
        one = len(missing) == 1
        faults.append(
            f"topic{'' if one else 's'} {', '.join(missing)} {'is' if one else 'are'} missing in the queue: start the "
            "app again, which makes what is missing"
        )
    for name in names:
        topic = there.get(name)
        if topic is None:
            continue
        if topic.error is not None:
            faults.append(f"topic {name} cannot be written ({topic.error.str()}): look at the queue's log")
        elif without := [str(p.id) for p in topic.partitions.values() if p.leader < 0 or _is_fatal(p.error)]:
            faults.append(
                f"topic {name} cannot be written: no broker leads partition{'s' if len(without) > 1 else ''} "
                f"{', '.join(without)}: start the brokers that have copies"
            )
    return faults


def _is_fatal(error: KafkaError | None) -> bool:
    """Whether a partition's error keeps writers away: a copy that is away does not."""
    return error is not None and error.name() != "REPLICA_NOT_AVAILABLE"
