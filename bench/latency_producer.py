"""A process that produces at a steady rate, the time of each call in its record: ADDRESS TOPIC RECORDS RATE."""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Producer

VALUE_BYTES = 100


def produce_steadily(address: str, topic: str, records: int, rate: int) -> None:
    """`records` records, evenly spaced; raises if one was not acknowledged."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "acks": "all"})
    padding = bytes(VALUE_BYTES - 8)
    step_ns = 1_000_000_000 // rate
    due = time.monotonic_ns()
    for _ in range(records):
        due += step_ns
        wait_ns = due - time.monotonic_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        producer.produce(topic, time.monotonic_ns().to_bytes(8, "big") + padding, partition=0, on_delivery=_delivered)
        producer.poll(0)
    if producer.flush(30) != 0:
        raise TimeoutError("records were not acknowledged within 30 s")


def _delivered(error: object, _: object) -> None:
    if error is not None:
        raise RuntimeError(str(error))


if __name__ == "__main__":
    produce_steadily(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    print(json.dumps({}))
