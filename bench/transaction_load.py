"""A process that commits transactions of 100 records: ADDRESS TOPIC PARTITIONS SECONDS WARM_SECONDS."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Producer

RECORDS = 100
_VALUE = bytes(100)
_ANSWER_S = 60.0


def commits(address: str, topic: str, partitions: int, seconds: float, warm_s: float) -> dict[str, float]:
    """Transactions a second, one after the other, each spread over all partitions."""
    producer: Any = Producer({"bootstrap.servers": address, "transactional.id": topic, "linger.ms": 0})
    producer.init_transactions(_ANSWER_S)
    _commit_for(producer, topic, partitions, warm_s)
    return {"rate": _commit_for(producer, topic, partitions, seconds)}


def _commit_for(producer: Any, topic: str, partitions: int, seconds: float) -> float:
    begun, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce(topic, _VALUE, partition=number % partitions)
        producer.commit_transaction(_ANSWER_S)
        count += 1
    return count / passed


if __name__ == "__main__":
    where, what, *numbers = sys.argv[1:]
    print(json.dumps(commits(where, what, int(numbers[0]), float(numbers[1]), float(numbers[2]))))
