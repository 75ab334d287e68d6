"""Puts events into the queue for asyncio: one connection for each way of acknowledging, reports on the loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.errors import PenstockError
from penstock.plan import Plan, TopicPlan

# Reports are taken on the loop itself: librdkafka's callbacks take Python's lock once a message, and from a thread of
# their own they would queue for it behind a busy loop. Measured: 189,000 events/s so, 80,000 to 143,000 with a thread.
REPORTS_EVERY_S = 0.001
LINGER_MS = 0.5
MESSAGES_MAX = 500_000
CLOSE_WITHIN_S = 10.0

Report = Callable[[int, Any, Any], None]
Sendable = tuple[bytes, bytes | None, Any]  # value, key, headers: a list of event.Headers
Note = Callable[[str, str], None]


class EventProducer:
    """Sends events and tells what became of each. All calls and all reports are on the loop's thread."""

    def __init__(
        self,
        queue: str,
        plan: Plan,
        *,
        deadline_ms: int,
        buffer_bytes_max: int,
        note: Note = lambda event, detail: None,
    ) -> None:
        """Topics with the same settings share a connection; nothing is kept for longer than `deadline_ms`."""
        self._queue = queue
        self._deadline_ms = deadline_ms
        self._buffer_bytes_max = buffer_bytes_max
        self._note = note
        self._settings = {name: _settings(topic) for name, topic in plan.topics.items()}
        self._producers: dict[tuple[str, ...], Producer] = {}
        self._broken: set[tuple[str, ...]] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def send(self, topic: str, events: Sequence[Sendable], on_report: Report) -> tuple[int, str]:
        """Hand over events in their order: how many were taken, and why not more.

        For each that was taken `on_report(number, error, message)` is called later, on the loop, exactly once.
        """
        produce = self._producer(topic).produce
        taken, fault = 0, ""
        try:
            for value, key, headers in events:
                produce(topic, value, key, on_delivery=partial(on_report, taken), headers=headers)
                taken += 1
        except BufferError:
            fault = "the buffer of the queue's client is full"
        except KafkaException as error:
            fault = error.args[0].str()
        if self._timer is None:
            self._timer = self._loop.call_later(REPORTS_EVERY_S, self._take_reports)
        return taken, fault

    def _producer(self, topic: str) -> Producer:
        settings = self._settings[topic]
        if settings in self._broken:
            self._broken.discard(settings)
            self._producers.pop(settings).purge()
        producer = self._producers.get(settings)
        if producer is None:
            producer = self._producers[settings] = Producer(self._configuration(settings))
        return producer

    def _configuration(self, settings: tuple[str, ...]) -> dict[str, Any]:
        acks, retries, idempotence = settings

        def on_error(error: KafkaError) -> None:
            if error.fatal():
                self._broken.add(settings)
            self._note("queue_trouble", error.str())

        return {
            "bootstrap.servers": self._queue,
            "client.id": f"penstock-edge-{os.getpid()}",
            "acks": acks,
            "retries": int(retries),
            "enable.idempotence": idempotence == "true",
            "delivery.timeout.ms": self._deadline_ms,
            "linger.ms": LINGER_MS,
            # The same partition for a key as Java's and Spark's producers choose.
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": MESSAGES_MAX,
            "queue.buffering.max.kbytes": self._buffer_bytes_max // 1024,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1000,
            "socket.nagle.disable": True,
            "error_cb": on_error,
            "log_level": 0,
        }

    def _take_reports(self) -> None:
        self._timer = None
        unreported = 0
        for producer in self._producers.values():
            producer.poll(0)
            unreported += len(producer)
        if unreported and self._timer is None:
            self._timer = self._loop.call_later(REPORTS_EVERY_S, self._take_reports)

    async def missing_topics(self, names: list[str], timeout_s: float) -> list[str]:
        """Which of these topics the queue does not have; PenstockError if it does not answer."""

        def ask() -> list[str]:
            asking = next(iter(self._producers.values()), None) or Producer(
                {"bootstrap.servers": self._queue, "log_level": 0}
            )
            there = asking.list_topics(timeout=timeout_s).topics
            return [name for name in names if name not in there]

        try:
            return await self._loop.run_in_executor(None, ask)
        except KafkaException as error:
            raise PenstockError(f"the queue does not answer: {error.args[0].str()}") from None

    async def close(self) -> None:
        """Wait for what is under way, up to a bound; what is then left is reported as failed."""
        deadline = self._loop.time() + CLOSE_WITHIN_S
        while any(map(len, self._producers.values())) and self._loop.time() < deadline:
            await asyncio.sleep(REPORTS_EVERY_S)
        for producer in self._producers.values():
            producer.purge()
            producer.poll(0)
        if self._timer is not None:
            self._timer.cancel()


def _settings(topic: TopicPlan) -> tuple[str, ...]:
    return tuple(topic.value("ingest", name) for name in ("acks", "retries", "enable.idempotence"))
