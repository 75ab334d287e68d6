"""A process that reads the records of latency_producer as they come: ADDRESS TOPIC WARM MEASURED."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaException, TopicPartition

_SILENCE_S = 30.0


def delays_ns(address: str, topic: str, records: int) -> list[int]:
    """How long each record took to come here; both processes read one monotonic clock."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1,
            "fetch.wait.max.ms": 500,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    delays: list[int] = []
    while len(delays) < records:
        message = consumer.poll(_SILENCE_S)
        now = time.monotonic_ns()
        if message is None:
            raise TimeoutError(f"no record for {_SILENCE_S:.0f} s")
        if message.error() is not None:
            raise KafkaException(message.error())
        delays.append(now - int.from_bytes((message.value() or b"")[:8], "big"))
    consumer.close()
    return delays


def percentile(ordered: Sequence[int], share: float) -> float:
    """The smallest value that at least `share` of the ordered values do not exceed."""
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


if __name__ == "__main__":
    warm, measured = int(sys.argv[3]), int(sys.argv[4])
    ordered = sorted(delays_ns(sys.argv[1], sys.argv[2], warm + measured)[warm:])
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    print(json.dumps({name: percentile(ordered, share) / 1e6 for name, share in shares.items()}))
