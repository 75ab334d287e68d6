"""The last committed record of a topic with one partition, found from its end."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.client.offsets import reader_settings

_STEP = 64  # offsets; most of them are records, the others mark the ends of transactions
_POLL_S = 0.1


def last_value(queue: str, topic: str, within_s: float) -> bytes | None:
    """The value of the last committed record; None if there is none. Blocks; KafkaException if the queue is away."""
    deadline = time.monotonic() + within_s
    consumer: Any = Consumer(reader_settings(queue, buffered_kib=1024))
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=within_s)
        step = _STEP
        while True:
            start = max(low, high - step)
            consumer.assign([TopicPartition(topic, 0, start)])
            found, value = _last(consumer, deadline)
            if found or start == low:
                return value
            step *= _STEP
    except TypeError:  # no watermarks: no answer
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
    finally:
        consumer.close()


def _last(consumer: Any, deadline: float) -> tuple[bool, bytes | None]:
    """Read to the end."""
    found, value = False, None
    while time.monotonic() < deadline:
        message = consumer.poll(_POLL_S)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found, value = True, message.value()
        elif error.name() == "_PARTITION_EOF":
            return found, value
        elif not error.retriable():
            raise KafkaException(error)
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
