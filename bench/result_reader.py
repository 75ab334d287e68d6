"""A process that waits for results: ADDRESS TOPIC EVENTS; it ends when the counts of all keys add up to EVENTS.

With EVENTS 0 it ends at the first result. The address may not answer yet.
"""

from __future__ import annotations

import json
import re
import sys
import time

from confluent_kafka import Consumer, KafkaError, TopicPartition

from bench.path_events import PARTITIONS

_COUNT = re.compile(rb'"count":(\d+)')
_WITHIN_S = 600.0


def wait_for(address: str, topic: str, events: int) -> float:
    """The monotonic time at which the last result wanted was read."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 20,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
            "error_cb": lambda _: None,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    counts: dict[bytes, int] = {}
    deadline = time.monotonic() + _WITHIN_S
    while time.monotonic() < deadline:
        for message in consumer.consume(1_000, 0.02):
            now = time.monotonic()
            error = message.error()
            if error is not None:
                if error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._ALL_BROKERS_DOWN):
                    raise RuntimeError(str(error))
                continue
            if not events:
                return now
            if found := _COUNT.search(message.value() or b""):
                counts[message.key() or b""] = int(found[1])
        if events and sum(counts.values()) >= events:
            return time.monotonic()
    raise TimeoutError(f"{sum(counts.values())} of {events} events were counted within {_WITHIN_S:.0f} s")


if __name__ == "__main__":
    print(json.dumps({"at": wait_for(sys.argv[1], sys.argv[2], int(sys.argv[3]))}))
