"""What analyze asks the queue itself, apart from Spark: whether it answers, and how many partitions there are."""

from __future__ import annotations

import socket

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_ANSWER_S = 5.0
_CONNECT_S = 1.0


class Queue:
    """The queue at an address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 0})

    def partitions(self) -> dict[str, int]:
        """Partitions of every topic; empty while the queue does not answer."""
        try:
            topics = self._admin.list_topics(timeout=_ANSWER_S).topics
        except KafkaException:
            return {}
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def answers(self) -> bool:
        """Whether one of its brokers takes a connection."""
        for place in self.address.split(","):
            host, _, port = place.strip().rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
                return True
            except OSError:
                continue
        return False
