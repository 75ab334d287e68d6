"""Where orders for queries stand: a file of the data folder, and a topic of the queue."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from penstock.analyze.kept import Kept, pending
from penstock.client.factory import reader_settings
from penstock.events.query_order import QueryOrder, decode_order, encode_order
from penstock.kafka.target import KafkaTarget

FILE, TOPIC = "file", "topic"
_POLL_S = 0.5
_RETRY_S = 0.5


class Log(Protocol):
    """Orders in the order in which they were given."""

    name: str

    def orders(self) -> list[QueryOrder]:
        """All of them, as far as is known."""
        ...


class FileLog:
    """DATA/analyze/orders.jsonl: it takes orders while no app and no queue runs."""

    name = FILE

    def __init__(self, data: Path) -> None:
        """`data` is the data folder of the run."""
        self.path = data / "analyze" / "orders.jsonl"
        self._seen = (0, 0)
        self._orders: list[QueryOrder] = []

    def append(self, order: QueryOrder) -> None:
        """Add an order, durably."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # A crash may have left a part of a line, which is then a line of its own.
            file.write(b"\n" + encode_order(order) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def orders(self) -> list[QueryOrder]:
        """All of them; the file is read again when it has changed."""
        try:
            found = self.path.stat()
        except OSError:
            return []
        if self._seen != (found.st_mtime_ns, found.st_size):
            self._seen = found.st_mtime_ns, found.st_size
            lines = self.path.read_bytes().split(b"\n")
            self._orders = [order for line in lines if (order := decode_order(line)) is not None]
        return self._orders


class TopicLog:
    """penstock.APP.orders, followed by a thread: it takes orders from wherever the queue can be reached."""

    name = TOPIC

    def __init__(self, queue: KafkaTarget, app: str, topic: str) -> None:
        self._queue = queue
        self._app = app
        self._topic = topic
        self._orders: list[QueryOrder] = []  # all that stood there at some moment: never a part of it
        self._reading: list[QueryOrder] = []
        self._stopping = threading.Event()
        self.is_read = threading.Event()  # all that stood there has been read
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def start(self) -> None:
        """Begin to read; until then it has no orders."""
        if not self._thread.is_alive() and not self._stopping.is_set():
            self._thread.start()

    def end(self) -> None:
        self._stopping.set()

    def orders(self) -> list[QueryOrder]:
        """All of the app, as of the last time that the end of the topic was read; none before that."""
        return self._orders

    def _run(self) -> None:
        settings = reader_settings(self._queue, buffered_kib=1024) | {"fetch.wait.max.ms": 500}
        consumer: Any = Consumer(settings)
        try:
            consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
            while not self._stopping.is_set():
                self._take(consumer)
        finally:
            consumer.close()

    def _take(self, consumer: Any) -> None:
        try:
            message = consumer.poll(_POLL_S)
        except KafkaException:
            self._stopping.wait(_RETRY_S)
            return
        if message is None:
            return
        if (error := message.error()) is not None:
            if error.name() == "_PARTITION_EOF":
                self._orders = list(self._reading)  # as a whole: a part of them would be obeyed again
                self.is_read.set()
            elif error.name() == "UNKNOWN_TOPIC_OR_PART" or not error.retriable():
                self._stopping.wait(_RETRY_S)  # the supervisor makes the topic while Spark starts
                consumer.assign([TopicPartition(self._topic, 0, OFFSET_BEGINNING)])
                self._reading = []
            return
        if (order := decode_order(message.value())) is not None and order.app == self._app:
            self._reading.append(order)


def first_pending(logs: tuple[Log, ...], query: str, kept: Kept) -> tuple[QueryOrder, str] | None:
    """The first order of a query that is not obeyed, and the name of its log; None if there is none."""
    for log in logs:
        orders = [order for order in log.orders() if order.query == query]
        for order in pending(orders, kept.obeyed.get(log.name))[:1]:
            return order, log.name
    return None
