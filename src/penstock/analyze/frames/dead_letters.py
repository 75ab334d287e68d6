"""What reaches no query goes to TOPIC.dead with the reason, where it stood, and its raw bytes; it stops nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.analyze.failures import AwayError
from penstock.analyze.frames.rows import AHEAD, broken_rows, read_records
from penstock.analyze.progress import Written
from penstock.client.factory import producer_settings
from penstock.events.headers import ID, REASON, SOURCE, Headers, dead_topic, lead_fault
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import TopicPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FLUSH_S = 60.0
_FALLBACK = "Spark could not read it by the schema"


class DeadLetters:
    """The dead letters of one topic: a batch of Spark's in, records of TOPIC.dead out."""

    def __init__(self, topic: TopicPlan, queue: KafkaTarget) -> None:
        self.topic = topic
        self.name = dead_topic(topic.name)
        self._queue = queue
        self._producer: Producer | None = None
        self.written: Written = {}

    def frame(self, spark: SparkSession, options: dict[str, str]) -> DataFrame:
        """The records of the topic that reach no query."""
        return broken_rows(read_records(spark, self.topic, self._queue, options), self.topic)

    def write(self, batch: DataFrame, number: int) -> None:
        """Write a batch; it counts as done only when the queue has all of it."""
        self.written[number] = self.write_rows(batch.toLocalIterator())

    def write_rows(self, rows: Iterable[Any]) -> int:
        """Write these rows, and wait for the queue; how many. AwayError if it has not all of them."""
        faults: list[str] = []
        count = 0
        try:
            for row in rows:
                self._produce(row, faults)
                count += 1
            left = self._producer.flush(_FLUSH_S) if self._producer is not None else 0
        except BaseException:
            self._producer = None
            raise
        if left or faults:
            # What it still holds would come later, beside the repeat; and after a fatal error it takes nothing more.
            self._producer = None
            raise AwayError(faults[0] if faults else "dead letters were not acknowledged")
        return count

    def _produce(self, row: Any, faults: list[str]) -> None:
        if self._producer is None:
            self._producer = Producer(producer_settings(self._queue) | {"enable.idempotence": True})

        def on_delivery(error: KafkaError | None, _: object) -> None:
            if error is not None:
                faults.append(error.str())

        headers: Any = letter_headers(row, self.topic)
        value, key = _bytes(row["value"]), _bytes(row["key"])
        while True:
            try:
                self._producer.produce(self.name, value, key=key, headers=headers, on_delivery=on_delivery)
                return
            except BufferError:
                self._producer.poll(1.0)
            except KafkaException as error:
                raise AwayError(error.args[0].str()) from error


def letter_headers(row: Any, topic: TopicPlan) -> Headers:
    """Why, from where, and whose."""
    headers = [
        (REASON, _reason(row, topic).encode()),
        (SOURCE, f"{row['topic']}/{row['partition']}/{row['offset']}".encode()),
    ]
    id = next((header["value"] for header in _each(row["headers"]) if header["key"] == ID), None)
    return headers if id is None else [*headers, (ID, bytes(id))]


def _reason(row: Any, topic: TopicPlan) -> str:
    value = _bytes(row["value"])
    if value is None:
        return "there is no value"
    fault = topic.schema.fault(value) if topic.schema else None
    if fault is None and row[AHEAD] and topic.event_time:
        fault = lead_fault(topic.event_time)
    return fault or _FALLBACK


def _each(headers: Iterable[Any] | None) -> Iterable[Any]:
    return headers or ()


def _bytes(part: Any) -> bytes | None:
    return None if part is None else bytes(part)
