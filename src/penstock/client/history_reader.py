"""Reads what a topic holds from given offsets on, by a consumer of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

from penstock.client.factory import reader_settings
from penstock.client.offsets import Place, offset_range
from penstock.client.record import Record, record_of
from penstock.kafka.target import KafkaTarget

_BATCH_MAX = 500
_ANSWER_S = 5.0
_BUFFERED_KIB = 1024
_DAMAGED = ("INVALID_MSG", "_BAD_MSG")


class Lost(NamedTuple):
    """Offsets from `start` to `end` that cannot be read, and why; `missed` is None where nobody can know."""

    topic: str
    partition: int
    start: int
    end: int
    missed: int | None
    reason: str


class History:
    """One reader of some partitions; what it cannot read it tells, and goes on behind."""

    def __init__(self, queue: KafkaTarget, starts: Mapping[Place, int], threads: Executor) -> None:
        self.positions = dict(starts)  # everything below was given
        self._queue = queue
        self._threads = threads
        self._consumer: Any = None
        self._added = dict(starts)
        self._damaged: dict[Place, int] = {}
        self._using = threading.Lock()  # whoever gave up waiting for a read may close while it is under way

    def add(self, place: Place, offset: int) -> None:
        """Read one more partition."""
        self.positions[place] = self._added[place] = offset

    async def read(self, wait_s: float) -> list[Record | Lost]:
        """What comes next, at most after `wait_s`; empty when nothing is there."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, wait_s)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._close)

    def _read(self, wait_s: float) -> list[Record | Lost]:
        with self._using:
            return self._read_some(wait_s)

    def _read_some(self, wait_s: float) -> list[Record | Lost]:
        from confluent_kafka import Consumer, TopicPartition

        if self._consumer is None:
            settings = reader_settings(self._queue, buffered_kib=_BUFFERED_KIB) | {"fetch.error.backoff.ms": 5}
            self._consumer = Consumer(settings)
        if self._added:
            added, self._added = self._added, {}
            self._consumer.incremental_assign([TopicPartition(*place, offset) for place, offset in added.items()])
        first = self._consumer.poll(wait_s)
        found: list[Record | Lost] = []
        for message in [first, *self._consumer.consume(_BATCH_MAX, 0)] if first is not None else ():
            self._take(message, found)
        return found

    def _take(self, message: Any, found: list[Record | Lost]) -> None:
        place = (message.topic(), message.partition())
        error = message.error()
        if error is None:
            record = record_of(message)
            if record.offset >= self.positions[place]:
                self._tell_damage(place, record.offset, found)
                self.positions[place] = record.offset + 1
                found.append(record)
        elif error.name() == "_PARTITION_EOF":
            # Offsets without a record (a filler, the mark of a transaction) may stand before the end.
            self._tell_damage(place, message.offset(), found)
            self.positions[place] = max(self.positions[place], message.offset())
        elif error.name() == "_AUTO_OFFSET_RESET":
            self._jump(place, found)
        elif error.name() in _DAMAGED:
            self._damaged.setdefault(place, self.positions[place])
            self._seek(place, max(message.offset(), self.positions[place]) + 1)

    def _tell_damage(self, place: Place, good: int, found: list[Record | Lost]) -> None:
        start = self._damaged.pop(place, None)
        if start is not None:
            found.append(Lost(*place, start, good, good - start, "damaged on disk"))

    def _jump(self, place: Place, found: list[Record | Lost]) -> None:
        from confluent_kafka import KafkaException

        asked = self.positions[place]
        try:
            low, high = offset_range(self._consumer, *place, _ANSWER_S)
        except KafkaException:  # no answer
            return self._seek(place, asked)
        if asked < low:
            found.append(Lost(*place, asked, low, low - asked, "no longer kept"))
        elif asked > high:
            found.append(Lost(*place, asked, low, None, "the topic was made again since"))
        else:
            return self._seek(place, asked)
        return self._seek(place, low)

    def _seek(self, place: Place, offset: int) -> None:
        from confluent_kafka import TopicPartition

        self.positions[place] = offset
        # A seek is refused while a partition is in error; a new assignment is not.
        self._consumer.incremental_unassign([TopicPartition(*place)])
        self._consumer.incremental_assign([TopicPartition(*place, offset)])

    def _close(self) -> None:
        with self._using:
            if self._consumer is not None:
                self._consumer.close()
