"""Writes records from the driver and waits until the queue has all of them: at least once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.analyze.failures import AwayError
from penstock.client.factory import producer_settings
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

_FLUSH_S = 60.0
# Another try ends like this one.
OF_THE_RECORD = ("MSG_SIZE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "INVALID_RECORD", "RECORD_LIST_TOO_LARGE")

DriverRecord = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]  # key, value, headers


class RecordWriter:
    """A producer of one topic. After an error it begins with a new one: the old one may still hold records."""

    def __init__(self, topic: str, queue: KafkaTarget, *, has_retries: bool = True) -> None:
        self._topic = topic
        self._queue = queue
        self._settings: dict[str, Any] = (
            {"enable.idempotence": True} if has_retries else {"acks": "1", "retries": 0, "enable.idempotence": False}
        )
        self._producer: Producer | None = None

    def write(self, records: Iterable[DriverRecord]) -> int:
        """Write these records, and wait for the queue; how many. AwayError if it has not all of them."""
        faults: list[KafkaError] = []
        count = 0
        try:
            for record in records:
                self._produce(record, faults)
                count += 1
            left = self._producer.flush(_FLUSH_S) if self._producer is not None else 0
        except BaseException:
            self._producer = None
            raise
        if left or faults:
            # What it still holds would come later, beside the repeat; and after a fatal error it takes nothing more.
            self._producer = None
            if faults:
                raise _failure(faults[0], self._topic)
            raise AwayError(f"records of {self._topic} were not acknowledged")
        return count

    def _produce(self, record: DriverRecord, faults: list[KafkaError]) -> None:
        if self._producer is None:
            self._producer = Producer(producer_settings(self._queue) | self._settings)

        def on_delivery(error: KafkaError | None, _: object) -> None:
            if error is not None:
                faults.append(error)

        key, value, of_record = record
        headers: Any = of_record
        while True:
            try:
                self._producer.produce(self._topic, value, key=key, headers=headers, on_delivery=on_delivery)
                return
            except BufferError:
                self._producer.poll(1.0)
            except KafkaException as error:
                raise _failure(error.args[0], self._topic) from error


def _failure(fault: KafkaError, topic: str) -> PenstockError:
    """AwayError if it passes by itself; else the reason."""
    if fault.name() in OF_THE_RECORD:
        return PenstockError(f"a record cannot be written to {topic}: {fault.str()}")
    return AwayError(fault.str())
