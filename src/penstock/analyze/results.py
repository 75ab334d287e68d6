"""From the DataFrame of a query to the records of its output topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from penstock import event
from penstock.analyze.call_sites import untold
from penstock.analyze.rows import EVENT, HEADERS, source_text
from penstock.analyze.spark_types import BINARY, STRING
from penstock.plan import TopicPlan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HEADER_NAMES = (event.ID, event.TIME, event.SOURCE, event.QUERY)
_TIME_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


@untold()
def to_records(result: DataFrame, output: TopicPlan, query: str) -> DataFrame:
    """Key, value and headers of every result, for Spark's Kafka sink."""
    columns = [F.col(f"`{name}`") for name in value_columns(result.columns)]
    options = {"ignoreNullFields": "false", **_TIME_OPTIONS}
    wanted = [_key(output).alias("key"), F.to_json(F.struct(*columns), options).alias("value")]
    if EVENT in result.columns:
        wanted.append(_headers(query).alias("headers"))
    return result.select(*wanted)


@untold()
def with_flat_headers(records: DataFrame) -> DataFrame:
    """Key, value and then the values of HEADER_NAMES, for a driver that writes them by itself."""
    values = [F.col("headers")[number]["value"] for number in range(len(HEADER_NAMES))]
    wanted = values if "headers" in records.columns else []
    return records.select(F.col("key").cast(BINARY), F.col("value").cast(BINARY), *wanted)


def value_columns(columns: list[str]) -> list[str]:
    """The columns that become the JSON of a result."""
    return [name for name in columns if name not in (EVENT, HEADERS)]


def _key(output: TopicPlan) -> Column:
    if not output.key:
        return F.lit(None).cast(STRING)
    texts = [F.col(f"`{name}`").cast(STRING) for name in output.key]
    if len(texts) == 1:
        return texts[0]
    parts = [F.coalesce(_escaped(text), F.lit(event.KEY_NULL)) for text in texts]
    return F.when(F.coalesce(*texts).isNotNull(), F.concat_ws(event.KEY_JOINT, *parts))


def _escaped(text: Column) -> Column:
    for plain, escaped in event.KEY_ESCAPES:
        text = F.replace(text, F.lit(plain), F.lit(escaped))
    return text


def _headers(query: str) -> Column:
    source = F.col(EVENT)
    texts = (
        source["id"],
        F.unix_millis(source["time"]).cast(STRING),
        source_text(source["topic"], source["partition"], source["offset"]),
        F.lit(query),
    )
    return F.array(
        *(
            F.struct(F.lit(name).alias("key"), text.cast(BINARY).alias("value"))
            for name, text in zip(HEADER_NAMES, texts, strict=True)
        )
    )
