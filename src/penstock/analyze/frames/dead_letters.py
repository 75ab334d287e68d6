"""What reaches no query goes to TOPIC.dead with the reason, where it stood, and its raw bytes; it stops nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from penstock.analyze.frames.rows import AHEAD, broken_rows, read_records
from penstock.analyze.progress import Written
from penstock.analyze.record_writer import RecordWriter
from penstock.events.headers import ID, REASON, SOURCE, Headers, dead_topic, lead_fault
from penstock.events.record_format import RecordFormat
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import TopicPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FALLBACK = "Spark could not read it by the schema"


class DeadLetters:
    """The dead letters of one topic: a batch of Spark's in, records of TOPIC.dead out."""

    def __init__(self, topic: TopicPlan, queue: KafkaTarget) -> None:
        self.topic = topic
        self.name = dead_topic(topic.name)
        self._queue = queue
        self._writer = RecordWriter(self.name, queue)
        self.written: Written = {}

    def frame(self, spark: SparkSession, options: dict[str, str]) -> DataFrame:
        """The records of the topic that reach no query."""
        return broken_rows(read_records(spark, self.topic, self._queue, options), self.topic)

    def write(self, batch: DataFrame, number: int) -> None:
        """Write a batch; it counts as done only when the queue has all of it."""
        self.written[number] = self.write_rows(batch.toLocalIterator())

    def write_rows(self, rows: Iterable[Any]) -> int:
        """Write these rows, and wait for the queue; how many. AwayError if it has not all of them."""
        return self._writer.write(
            (_bytes(row["key"]), _bytes(row["value"]), letter_headers(row, self.topic)) for row in rows
        )


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
    fault = topic.schema.fault(value) if topic.schema and topic.format is RecordFormat.JSON else None
    if fault is None and row[AHEAD] and topic.event_time:
        fault = lead_fault(topic.event_time)
    return fault or _FALLBACK


def _each(headers: Iterable[Any] | None) -> Iterable[Any]:
    return headers or ()


def _bytes(part: Any) -> bytes | None:
    return None if part is None else bytes(part)
