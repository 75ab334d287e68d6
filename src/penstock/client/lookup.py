"""Finds records without a group: the last of a topic, all of one partition, or one by a header within bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from penstock.client.factory import reader_settings
from penstock.client.offsets import offset_range, offsets_at_time, unanswered
from penstock.client.record import Record, record_of
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

_STEP = 64  # offsets; most of them are records, the others mark the ends of transactions
_POLL_S = 0.1


def values_to_end(queue: KafkaTarget, topic: str, within_s: float) -> list[bytes | None]:
    """The values of all records, in order. Blocks; KafkaException if the queue is away."""
    consumer: Any = Consumer(reader_settings(queue, buffered_kib=1024))
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return [record.value for record in _to_end(consumer, time.monotonic() + within_s)]
    finally:
        consumer.close()


def last_value(queue: KafkaTarget, topic: str, within_s: float) -> bytes | None:
    """The value of the last committed record; None if there is none. Blocks; KafkaException if the queue is away."""
    record = last_record(queue, topic, within_s)
    return None if record is None else record.value


def last_record(queue: KafkaTarget, topic: str, within_s: float) -> Record | None:
    """The last committed record; None if there is none. Blocks; KafkaException if the queue is away."""
    deadline = time.monotonic() + within_s
    consumer: Any = Consumer(reader_settings(queue, buffered_kib=1024))
    try:
        low, high = offset_range(consumer, topic, 0, within_s)
        step = _STEP
        while True:
            start = max(low, high - step)
            consumer.assign([TopicPartition(topic, 0, start)])
            last = None
            for record in _to_end(consumer, deadline):
                last = record
            if last is not None or start == low:
                return last
            step *= _STEP
    finally:
        consumer.close()


def _to_end(consumer: Any, deadline: float) -> Iterator[Record]:
    """The records up to the end of the one partition that is assigned."""
    while time.monotonic() < deadline:
        message = consumer.poll(_POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is None:
            yield record_of(message)
        elif error.name() == "_PARTITION_EOF":
            return
        elif not error.retriable():
            raise KafkaException(error)
    raise unanswered()


RECORDS_MAX = 500_000
_ANSWER_S = 5.0
_BUFFERED_KIB = 8 * 1024


def find_record(
    queue: KafkaTarget, topic: str, partitions: int, header: tuple[str, bytes], since_ms: int, seconds_max: float
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
