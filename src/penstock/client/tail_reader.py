"""Whether records stand at the end of a partition, or only markers of transactions.

The end lies behind the markers, and a marker is given to no reader. Nor is a record of an aborted transaction to
readers of committed records. Offsets do not tell what they hold: only reading does.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from penstock.client.factory import reader_settings
from penstock.client.offsets import Place
from penstock.kafka.target import KafkaTarget

_BUFFERED_KIB = 1_024
_FETCH_BYTES = 65_536  # of each partition
LAST = 16  # offsets in which the last record of a partition is looked for


class TailReader:
    """Reads the last offsets of partitions. Its methods block until the time they are given is over, at most."""

    def __init__(self, queue: KafkaTarget) -> None:
        from confluent_kafka import Consumer

        settings = {
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": _FETCH_BYTES,
            "queued.min.messages": 1,
        }
        self._consumer: Any = Consumer(reader_settings(queue, buffered_kib=_BUFFERED_KIB) | settings)

    def fully_read(self, tails: Mapping[Place, tuple[int, int]], within_s: float) -> set[Place]:
        """The places that hold no committed record from the first of their offsets up to the second.

        A place that holds an open transaction is not among them, nor one that was not read in time.
        """
        last, ended = self._read(tails, within_s, only_first=True)
        return ended - last.keys()

    def record_ends(self, ends: Mapping[Place, int], within_s: float) -> dict[Place, int]:
        """The offset behind the last committed record of each place; its end where that record is further back.

        A place that holds an open transaction is left out, and so is one that was not read in time.
        """
        tails = {place: (max(0, end - LAST), end) for place, end in ends.items()}
        last, ended = self._read(tails, within_s, only_first=False)
        return {place: last[place] + 1 if place in last else ends[place] for place in ended}

    def close(self) -> None:
        self._consumer.close()

    def _read(
        self, tails: Mapping[Place, tuple[int, int]], within_s: float, *, only_first: bool
    ) -> tuple[dict[Place, int], set[Place]]:
        """The last record seen in each place, and the places that were read to their end."""
        from confluent_kafka import TopicPartition

        last: dict[Place, int] = {}
        ended: set[Place] = set()
        left = set(tails)
        if left:
            self._consumer.assign([TopicPartition(*place, begin) for place, (begin, _) in tails.items()])
        deadline = time.monotonic() + within_s
        while left and (wait_s := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(wait_s)
            if message is None or (place := (message.topic(), message.partition())) not in left:
                continue
            error, end = message.error(), tails[place][1]
            is_record = error is None and message.offset() < end
            if is_record:
                last[place] = message.offset()
            reached = message.offset() + 1 if is_record else message.offset()
            is_end = reached >= end and (error is None or error.name() == "_PARTITION_EOF")
            if is_end:
                ended.add(place)
            if is_end or only_first or not is_record:
                left.discard(place)
                self._consumer.pause([TopicPartition(*place)])
        # A partition stays paused when it is assigned again.
        self._consumer.resume([TopicPartition(*place) for place in tails.keys() - left])
        self._consumer.unassign()
        return last, ended
