"""How each client of the queue connects: settings of librdkafka, options of Spark's Java client, a raw socket.

What a `KafkaTarget` gains, such as TLS or SASL, is translated here and in no other module; tests/unit/test_kafka_target
looks for others. Only the clients of `drills` have settings of their own: they play programs of users.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient


def client_settings(queue: KafkaTarget) -> dict[str, Any]:
    """librdkafka's settings of every client: it reconnects quickly after an outage, and logs nothing by itself."""
    return {
        "bootstrap.servers": str(queue),
        "client.id": "penstock",
        "log_level": 0,
        "error_cb": _ignore,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 500,
    }


def producer_settings(queue: KafkaTarget) -> dict[str, Any]:
    """Settings of every producer: keys are placed as Java's and Spark's producers place them, and no topic is created.

    librdkafka calls `allow.auto.create.topics` a consumer's setting, and obeys it in producers, too.
    """
    return client_settings(queue) | {"partitioner": "murmur2_random", "allow.auto.create.topics": False}


def reader_settings(queue: KafkaTarget, *, buffered_kib: int) -> dict[str, Any]:
    """A consumer of assigned partitions: no group, nothing committed, no jump that no code decided."""
    return client_settings(queue) | {
        "group.id": "penstock-reader",  # the library wants one
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,  # a partition that is added during a fetch waits for its end
        "fetch.error.backoff.ms": 50,
        "queued.min.messages": 10_000,
        "queued.max.messages.kbytes": buffered_kib,
    }


def admin_client(queue: KafkaTarget) -> AdminClient:
    """A client for topics, their settings, and groups."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(client_settings(queue))


def spark_options(queue: KafkaTarget) -> dict[str, str]:
    """The options of Spark's Kafka source and sink: Java's client settings behind the prefix `kafka.`."""
    return {"kafka.bootstrap.servers": str(queue)}


def open_socket(queue: KafkaTarget, timeout_s: float) -> socket.socket:
    """A connection to the first address that accepts one; PenstockError with the last failure if none does."""
    failure: OSError | None = None
    for host, port in queue.addresses:
        try:
            return connect(queue.at(host, port), timeout_s)
        except OSError as error:
            failure = error
    raise PenstockError(f"{queue} does not answer ({failure})") from None


def connect(broker: KafkaTarget, timeout_s: float) -> socket.socket:
    """A connection to the one address of `broker`, ready for requests; OSError if the broker does not accept it."""
    (address,) = broker.addresses
    return socket.create_connection(address, timeout_s)


def _ignore(_: object) -> None:
    """The call that waits for the connection reports its errors."""
