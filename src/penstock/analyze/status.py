"""Tells the topic penstock.queries how every query is: each second, and at each change."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
from confluent_kafka import KafkaException, Producer

from penstock.analyze.newest import Newest, NewestResults
from penstock.analyze.queue import Queue
from penstock.client.offsets import producer_settings
from penstock.event import QUERIES_TOPIC
from penstock.plan import Plan

_EVERY_S = 1.0
_MESSAGES_MAX = 1_000  # while the queue is away the newest word is worth more than all that were not heard


class Reporter:
    """A thread that asks the queue and reports; the queries themselves never wait for it."""

    def __init__(self, queue: Queue, plan: Plan, records: Callable[[], list[Mapping[str, Any]]]) -> None:
        """`records` gives one status a query, at any time and from this thread."""
        self._queue = queue
        self._topics = list(plan.topics)
        self._newest = NewestResults(queue.address, [query.writes for query in plan.queries.values()])
        self._records = records
        self._changed = threading.Event()
        self._stopping = False
        self.queue_answers = True
        self.ends: dict[tuple[str, int], int] = {}
        self._producer = Producer(
            producer_settings(queue.address)
            | {
                "queue.buffering.max.messages": _MESSAGES_MAX,
                "message.timeout.ms": 5_000,
                "linger.ms": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)

    @property
    def newest(self) -> Mapping[str, Newest]:
        """What the newest results of each output topic tell."""
        return self._newest.told

    def start(self) -> None:
        self._thread.start()

    def changed(self) -> None:
        """Something changed: report now."""
        self._changed.set()

    def end(self) -> None:
        """Report a last time and end."""
        self._stopping = True
        self._changed.set()
        self._thread.join(2 * _EVERY_S)

    def _run(self) -> None:
        next_look = 0.0
        while not self._stopping:
            now = time.monotonic()
            is_due = now >= next_look
            if is_due:
                next_look = now + _EVERY_S
            self._go_on(is_due)
            self._changed.wait(max(0.0, next_look - time.monotonic()))
            self._changed.clear()
        self._go_on(False)
        self._producer.flush(_EVERY_S)
        self._newest.close()

    def _go_on(self, looks: bool) -> None:
        try:
            if looks:
                self._look()
            self._report()
        except Exception:  # noqa: BLE001  # the top of a loop: without it every query would wait or run on old word
            sys.stderr.write(f"the status of the queries could not be told:\n{traceback.format_exc()}")
            sys.stderr.flush()

    def _look(self) -> None:
        self.queue_answers = self._queue.answers()
        if self.queue_answers:
            self.ends = self.ends | self._queue.ends(self._topics)  # as a whole: another thread reads them
            with suppress(KafkaException):
                self._newest.sample(self.ends)

    def _report(self) -> None:
        for record in self._records():
            with suppress(BufferError, KafkaException):
                self._producer.produce(
                    QUERIES_TOPIC, msgspec.json.encode(record), key=f"{record['app']}/{record['query']}"
                )
        self._producer.poll(0)
