"""Looks for one record in a topic by a header, from a time on, within bounds."""

from __future__ import annotations

import time
from typing import Any

from penstock.client.offsets import offsets_at_time, reader_settings
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
        starts = offsets_at_time(consumer, topic, range(partitions), since_ms, _ANSWER_S)
        found = {partition: offset for partition, offset in starts.items() if offset is not None}
        consumer.assign([TopicPartition(topic, *place) for place in found.items()])
        return _search(consumer, set(found), header, seconds_max)
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
