"""A process that fills a topic as fast as it can: ADDRESS TOPIC EVENTS [headers]. Prints events/s, all acknowledged."""

from __future__ import annotations

import json
import sys
import time
import uuid
from typing import Any

from confluent_kafka import Producer

from bench.path_events import card_of, event
from penstock.events.headers import event_headers


def fill(address: str, topic: str, events: int, with_headers: bool) -> float:
    """Events a second of confluent-kafka alone: acks=all, idempotent; with the headers that an edge gives."""
    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    who = str(uuid.uuid4()).encode()
    begun = time.perf_counter()
    for number in range(events):
        headers: Any = event_headers(f"e-{number:010d}", who, number, int(time.time() * 1000)) if with_headers else None
        while True:
            try:
                producer.produce(topic, event(number, time.time_ns()), card_of(number), headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1_000 == 0:
            producer.poll(0)
    if producer.flush(120) != 0:
        raise TimeoutError("events were not acknowledged within 120 s")
    return events / (time.perf_counter() - begun)


if __name__ == "__main__":
    print(json.dumps({"rate": fill(sys.argv[1], sys.argv[2], int(sys.argv[3]), "headers" in sys.argv[4:])}))
