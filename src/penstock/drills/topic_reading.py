"""Reads a topic from its beginning to its end, as a plain client."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.client.offsets import offset_range, reader_settings
from penstock.client.record import Record, record_of
from penstock.errors import PenstockError

_TIMEOUT_S = 30.0
_WITHOUT_RECORDS_S = 60.0


def read_topic(queue: str, topic: str) -> Iterator[Record]:
    """Every record that the topic holds now, partition by partition in the order of offsets."""
    consumer = Consumer(reader_settings(queue, buffered_kib=65_536))
    try:
        found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        for partition in sorted(found.partitions):
            low, high = offset_range(consumer, topic, partition, _TIMEOUT_S)
            if low < high:
                consumer.assign([TopicPartition(topic, partition, low)])
                yield from _read(consumer, topic, high)
    except KafkaException as error:
        raise PenstockError(f"{topic} could not be read: {error}") from None
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, high: int) -> Iterator[Record]:
    came = time.monotonic()
    while time.monotonic() - came < _WITHOUT_RECORDS_S:
        for message in consumer.consume(10_000, timeout=0.1):
            came = time.monotonic()
            fault = message.error()
            offset = message.offset() or 0
            if fault is None:
                yield record_of(message)
            if offset >= high - 1 or (fault is not None and fault.name() == "_PARTITION_EOF" and offset >= high):
                return
    raise PenstockError(f"{topic} could not be read to its end at {high}")
