"""Whether anything is left to read between a position and the end of a partition.

The end lies behind the markers with which transactions end, and a marker is given to no reader. So is a record of an
aborted transaction to readers of committed records. Only reading tells: offsets do not say what they hold.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from penstock.client.offsets import Place, reader_settings

_BUFFERED_KIB = 1_024
_FETCH_BYTES = 65_536  # of each partition: the first record answers the question


def fully_read(queue: str, tails: Mapping[Place, tuple[int, int]], within_s: float) -> set[Place]:
    """The places that hold no committed record from the first offset up to the second. Blocks.

    What cannot be told within the time is not among them, nor a place that holds an open transaction.
    """
    from confluent_kafka import Consumer, TopicPartition

    if not tails:
        return set()
    settings = {"isolation.level": "read_committed", "fetch.message.max.bytes": _FETCH_BYTES, "queued.min.messages": 1}
    consumer: Any = Consumer(reader_settings(queue, buffered_kib=_BUFFERED_KIB) | settings)
    found: set[Place] = set()
    unknown = set(tails)
    deadline = time.monotonic() + within_s
    try:
        consumer.assign([TopicPartition(*place, position) for place, (position, _) in tails.items()])
        while unknown and (wait_s := deadline - time.monotonic()) > 0:
            message = consumer.poll(wait_s)
            if message is None or (place := (message.topic(), message.partition())) not in unknown:
                continue
            error = message.error()
            if (error is None or error.name() == "_PARTITION_EOF") and message.offset() >= tails[place][1]:
                found.add(place)
            unknown.discard(place)
            consumer.pause([TopicPartition(*place)])
    finally:
        consumer.close()
    return found
