"""A process that reads a topic with confluent-kafka: ADDRESS TOPIC RECORDS [ISOLATION]."""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

_AT_ONCE = 1000
_SILENCE_S = 30.0


def read_all(address: str, topic: str, records: int, isolation: str = "read_committed") -> float:
    """Records a second from the first record to the last."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "queued.min.messages": 1_000_000,
            "isolation.level": isolation,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    left = records - _count(consumer.consume(1, _SILENCE_S))
    begun = time.perf_counter()
    while left > 0:
        left -= _count(consumer.consume(min(left, _AT_ONCE), _SILENCE_S))
    rate = (records - 1) / (time.perf_counter() - begun)
    consumer.close()
    return rate


def _count(messages: list[Message]) -> int:
    if not messages:
        raise TimeoutError(f"no record for {_SILENCE_S:.0f} s")
    error = messages[-1].error()
    if error is not None:
        raise KafkaException(error)
    return len(messages)


if __name__ == "__main__":
    print(json.dumps({"rate": read_all(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])}))
