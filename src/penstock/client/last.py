"""The committed records of a topic with one partition: all of them, or the last, found from its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from penstock.client.offsets import offset_range, reader_settings, unanswered
from penstock.client.record import Record, record_of

_STEP = 64  # offsets; most of them are records, the others mark the ends of transactions
_POLL_S = 0.1


def values_to_end(queue: str, topic: str, within_s: float) -> list[bytes | None]:
    """The values of all records, in order. Blocks; KafkaException if the queue is away."""
    consumer: Any = Consumer(reader_settings(queue, buffered_kib=1024))
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return [record.value for record in _to_end(consumer, time.monotonic() + within_s)]
    finally:
        consumer.close()


def last_value(queue: str, topic: str, within_s: float) -> bytes | None:
    """The value of the last committed record; None if there is none. Blocks; KafkaException if the queue is away."""
    record = last_record(queue, topic, within_s)
    return None if record is None else record.value


def last_record(queue: str, topic: str, within_s: float) -> Record | None:
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
