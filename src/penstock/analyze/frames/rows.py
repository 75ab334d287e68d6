"""From the records of a topic to the rows a query sees, and apart from them what does not parse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from penstock.analyze.frames.call_sites import untold
from penstock.analyze.frames.spark_types import BINARY, LONG, STRING, column_words, struct_words
from penstock.client.factory import spark_options
from penstock.events.headers import EVENT_LEAD_MS, ID, PRODUCER, SEQUENCE, TIME
from penstock.events.record_format import RecordFormat
from penstock.events.schema import Column as SchemaColumn
from penstock.events.schema import Schema, Type
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import TopicPlan
from penstock.plan.policies import Isolation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

EVENT = "_event"
HEADERS = "_headers"
BROKEN = "_penstock_broken"
PARSED = "_penstock_parsed"
AHEAD = "_penstock_ahead"

_ONE_COLUMN = (RecordFormat.TEXT, RecordFormat.BYTES)
_EARLIEST = -2  # as an offset, in the words of the connector
_YEAR_10000_MS = 253_402_300_800_000


def read_records(spark: SparkSession, topic: TopicPlan, queue: KafkaTarget, options: Mapping[str, str]) -> DataFrame:
    """The records of a topic as Spark's connector gives them, with headers; what is committed, if that was promised."""
    return spark.readStream.format("kafka").options(**_reading(topic, queue), **options).load()


def read_range(
    spark: SparkSession,
    topic: TopicPlan,
    queue: KafkaTarget,
    starts: Mapping[str, int],
    ends: Mapping[str, int],
    options: Mapping[str, str],
) -> DataFrame:
    """The records between two positions of each partition in `ends`; a new partition is read from its beginning."""
    reading = _reading(topic, queue)
    del reading["subscribe"]  # it would ask for the partitions that were added since
    bounds = {
        "assign": json.dumps({topic.name: sorted(map(int, ends))}),
        "startingOffsets": json.dumps({topic.name: {part: starts.get(part, _EARLIEST) for part in ends}}),
        "endingOffsets": json.dumps({topic.name: dict(ends)}),
    }
    return spark.read.format("kafka").options(**reading, **options, **bounds).load()


def _reading(topic: TopicPlan, queue: KafkaTarget) -> dict[str, str]:
    options = spark_options(queue) | {"subscribe": topic.name, "includeHeaders": "true"}
    if topic.policy.analyze.isolation.value is Isolation.COMMITTED:
        options["kafka.isolation.level"] = "read_committed"
    return options


@untold()
def good_rows(records: DataFrame, topic: TopicPlan) -> DataFrame:
    """The schema's columns, `_event` and `_headers`, of every record that parses and is not ahead of its time."""
    schema = _schema_of(topic)
    parsed = records.withColumn(PARSED, _parsed(topic)).where(~_is_broken(topic) & ~_is_ahead(topic))
    columns = [F.col(PARSED)[name].alias(name) for name in schema.names]
    return parsed.select(*columns, _event_struct().alias(EVENT), F.col("headers").alias(HEADERS))


@untold()
def broken_rows(records: DataFrame, topic: TopicPlan) -> DataFrame:
    """Every other record, raw: key, value, headers, where it stands, and whether it is ahead of its time."""
    parsed = records.withColumn(PARSED, _parsed(topic)).where(_is_broken(topic) | _is_ahead(topic))
    return parsed.select("key", "value", "headers", "topic", "partition", "offset", _is_ahead(topic).alias(AHEAD))


def _schema_of(topic: TopicPlan) -> Schema:
    if topic.schema is None:
        raise ValueError(f"topic {topic.name} has no schema")
    return topic.schema


def _parsed(topic: TopicPlan) -> Column:
    schema = _schema_of(topic)
    if topic.format in _ONE_COLUMN:
        kind = BINARY if topic.format is RecordFormat.BYTES else STRING
        parsed = F.struct(F.col("value").cast(kind).alias(schema.names[0]))
    else:
        # Spark fills the extra column with the text of what it could not read, and leaves it null else.
        columns = (*schema.columns, SchemaColumn(BROKEN, Type("string")))
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BROKEN}
        text = F.col("value").cast(STRING)
        if topic.format is RecordFormat.CSV:
            parsed = F.from_csv(text, column_words(columns), options)
        else:
            parsed = F.from_json(text, struct_words(columns), options)
    # Always true, but not to the optimizer, which would copy the parsing into every filter and column above it.
    return F.when(F.spark_partition_id() >= 0, parsed)


def _is_broken(topic: TopicPlan) -> Column:
    parsed = F.col(PARSED)
    broken = F.col("value").isNull() | parsed.isNull()
    if topic.format is not RecordFormat.BYTES:
        broken = broken | ~F.is_valid_utf8(F.col("value").cast(STRING))
    if topic.format not in _ONE_COLUMN:
        broken = broken | parsed[BROKEN].isNotNull()
    for name in _schema_of(topic).required:
        broken = broken | parsed[name].isNull()
    return F.coalesce(broken, F.lit(True))


def _is_ahead(topic: TopicPlan) -> Column:
    """Whether the event time is too far ahead: such an event moves the watermark, and all later ones are late."""
    if topic.event_time is None:
        return F.lit(False)
    lead = F.lit(timedelta(milliseconds=EVENT_LEAD_MS))
    return F.coalesce(F.col(PARSED)[topic.event_time] > _record_time() + lead, F.lit(False))


def _record_time() -> Column:
    """When the event was accepted; when it was stored, if nobody said so in a number that is a time."""
    time_ms = _header(TIME).try_cast(LONG)
    told = F.when(time_ms.between(0, _YEAR_10000_MS - 1), F.timestamp_millis(time_ms))
    return F.coalesce(told, F.col("timestamp"))


def _event_struct() -> Column:
    return F.struct(
        F.coalesce(_header(ID), source_text(F.col("topic"), F.col("partition"), F.col("offset"))).alias("id"),
        _header(PRODUCER).alias("producer"),
        _header(SEQUENCE).try_cast(LONG).alias("sequence"),
        F.col("topic"),
        F.col("partition"),
        F.col("offset"),
        _record_time().alias("time"),
    )


def source_text(topic: Column, partition: Column, offset: Column) -> Column:
    """TOPIC/PARTITION/OFFSET."""
    return F.concat_ws("/", topic, partition.cast(STRING), offset.cast(STRING))


def _header(name: str) -> Column:
    found = F.filter(F.col("headers"), lambda header: header["key"] == name)
    return F.get(found, F.lit(0))["value"].cast(STRING)
