"""Looks for one record in a topic by a header, from a time on, within bounds."""

from __future__ import annotations

import time
from typing import Any

from penstock.client.offsets import reader_settings
from penstock.client.record import Record, record_of
from penstock.errors import PenstockError

RECORDS_MAX = 500_000
_ANSWER_S = 5.0
_BUFFERED_KIB = 8 * 1024


def find_record(
    queue: str, topic: str, partitions: int, header: tuple[str, bytes], since_ms: int, seconds_max: float
) -> Record | None:
    """The last record with that header up to the topic's end, or up to the bounds; blocks. PenstockError: no answer."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer: Any = Consumer(reader_settings(queue, buffered_kib=_BUFFERED_KIB))
    try:
        asked = [TopicPartition(topic, number, since_ms) for number in range(partitions)]
        found = consumer.offsets_for_times(asked, timeout=_ANSWER_S)
        # A negative offset: no record is that young.
        consumer.assign([place for place in found if place.offset >= 0])
        return _search(consumer, {place.partition for place in found if place.offset >= 0}, header, seconds_max)
    except KafkaException as error:
        raise PenstockError(f"the queue does not answer: {error.args[0].str()}") from None
    finally:
        consumer.close()


def _search(consumer: Any, open_partitions: set[int], header: tuple[str, bytes], seconds_max: float) -> Record | None:
    deadline, read, last = time.monotonic() + seconds_max, 0, None
    while open_partitions and read < RECORDS_MAX and time.monotonic() < deadline:
        for message in consumer.consume(1_000, 0.05):
            if message.error() is not None:
                if message.error().name() == "_PARTITION_EOF":
                    open_partitions.discard(message.partition())
                continue
            read += 1
            if header in (message.headers() or ()):
                last = record_of(message)
    return last
