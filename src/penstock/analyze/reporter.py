"""Tells the topic penstock.queries how every query is: each second, and at each change."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress

from confluent_kafka import KafkaException, Producer

from penstock.analyze.group_positions import GroupPositions
from penstock.analyze.queue_probe import Queue
from penstock.analyze.result_latency import Newest, NewestResults
from penstock.client.factory import producer_settings
from penstock.client.offsets import Place
from penstock.client.tail_reader import TailReader
from penstock.events.headers import QUERIES_TOPIC
from penstock.events.query_status import QueryStatus, encode_status
from penstock.plan.plan import Plan

_EVERY_S = 1.0
_TAILS_S = 0.5
_MESSAGES_MAX = 1_000  # while the queue is away the newest word is worth more than all that were not heard


class Reporter:
    """A thread that asks the queue and reports; the queries themselves never wait for it."""

    def __init__(self, queue: Queue, plan: Plan, statuses: Callable[[], list[QueryStatus]]) -> None:
        """`statuses` gives one a query, at any time and from this thread."""
        self._queue = queue
        self._topics = list(plan.topics)
        self._newest = NewestResults(queue.target, [query.writes for query in plan.queries.values()])
        self._groups = GroupPositions(queue.target, plan.app)
        self._statuses = statuses
        self._changed = threading.Event()
        self._stopping = False
        self.queue_answers = True
        self.ends: dict[Place, int] = {}  # behind the last record where a partition is quiet, else as the queue tells
        self._queue_ends: dict[Place, int] = {}
        self._record_ends: dict[Place, tuple[int, int]] = {}  # an end of the queue, and that of the records below it
        self._tails = TailReader(queue.target)
        self._read_topics = {topic for query in plan.queries.values() for topic in query.reads}
        self._producer = Producer(
            producer_settings(queue.target)
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
        self._groups.start()

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
        self._groups.end(_EVERY_S)
        self._producer.flush(_EVERY_S)
        self._newest.close()
        self._tails.close()

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
            before, now = self._queue_ends, self._queue.ends(self._topics)
            self._queue_ends = before | now
            with suppress(KafkaException):
                self._find_record_ends({place: end for place, end in now.items() if before.get(place) == end})
            # As a whole: another thread reads them.
            self.ends = {place: self._record_end(place, end) for place, end in self._queue_ends.items()}
            with suppress(KafkaException):
                self._newest.sample(self._queue_ends, time.monotonic_ns() // 1_000_000)

    def _find_record_ends(self, quiet: Mapping[Place, int]) -> None:
        """Look once at each partition in which nothing was written for a look: markers may stand at its end."""
        new = {
            place: end
            for place, end in quiet.items()
            if end and place[0] in self._read_topics and self._record_ends.get(place, (0, 0))[0] != end
        }
        for place, record_end in self._tails.record_ends(new, _TAILS_S).items():
            self._record_ends[place] = new[place], record_end

    def _record_end(self, place: Place, end: int) -> int:
        looked_at, record_end = self._record_ends.get(place, (0, 0))
        return record_end if looked_at == end else end

    def _report(self) -> None:
        statuses = self._statuses()
        for status in statuses:
            with suppress(BufferError, KafkaException):
                self._producer.produce(QUERIES_TOPIC, encode_status(status), key=status.key)
        self._producer.poll(0)
        if self.queue_answers:
            self._groups.commit({status.query: status.positions for status in statuses})
