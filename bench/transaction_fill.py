"""A process that writes records of 100 B in transactions of 1,000: ADDRESS TOPIC RECORDS."""

from __future__ import annotations

import json
import sys
from typing import Any

from confluent_kafka import Producer

_AT_ONCE = 1_000
_VALUE = bytes(100)
_ANSWER_S = 60.0


def fill(address: str, topic: str, records: int) -> None:
    """All of them committed when it returns."""
    producer: Any = Producer({"bootstrap.servers": address, "transactional.id": topic, "linger.ms": 5})
    producer.init_transactions(_ANSWER_S)
    for begun in range(0, records, _AT_ONCE):
        producer.begin_transaction()
        for _ in range(min(_AT_ONCE, records - begun)):
            producer.produce(topic, _VALUE)
        producer.commit_transaction(_ANSWER_S)


if __name__ == "__main__":
    fill(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps({}))
