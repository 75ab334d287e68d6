"""A process that reads latency_producer's records until SIGTERM: ADDRESS TOPIC. Prints when each came, how late."""

from __future__ import annotations

import json
import signal
import sys
import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

_POLL_S = 0.5


class LiveReader:
    """Collects samples until it is told to stop."""

    def __init__(self, address: str, topic: str) -> None:
        self._is_running = True
        self._consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self._is_running = False

    def samples(self) -> list[tuple[int, int]]:
        """(when it came, how long it took) of each record, in ns of the monotonic clock that all processes share."""
        found: list[tuple[int, int]] = []
        while self._is_running:
            message = self._consumer.poll(_POLL_S)
            now = time.monotonic_ns()
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            found.append((now, now - int.from_bytes((message.value() or b"")[:8], "big")))
        self._consumer.close()
        return found


if __name__ == "__main__":
    print(json.dumps(LiveReader(sys.argv[1], sys.argv[2]).samples()))
