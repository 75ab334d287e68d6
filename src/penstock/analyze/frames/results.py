"""From the DataFrame of a query to the records of its output topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from penstock.analyze.frames.call_sites import untold
from penstock.analyze.frames.meaning import KeyColumn, Meaning
from penstock.analyze.frames.rows import EVENT, HEADERS, source_text
from penstock.analyze.frames.spark_types import BINARY, STRING
from penstock.events.headers import ID, KEY_COLUMNS, KEY_ESCAPES, KEY_JOINT, KEY_NULL, KIND, QUERY, SOURCE, TIME
from penstock.events.record_format import RecordFormat

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_OF_EVENT = (ID, TIME, SOURCE)
_TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
_TIME_OPTIONS = {"timestampFormat": _TIME_FORMAT}


@untold()
def to_records(result: DataFrame, query: str, meaning: Meaning, form: RecordFormat = RecordFormat.JSON) -> DataFrame:
    """Key, value and headers of every result, for Spark's Kafka sink."""
    return result.select(
        _key(result, meaning).alias("key"),
        _value(result, form).alias("value"),
        _headers(query, meaning, EVENT in result.columns).alias("headers"),
    )


@untold()
def with_flat_headers(records: DataFrame, names: Sequence[str]) -> DataFrame:
    """Key, value and then the values of the headers of these names, for a driver that writes them by itself."""
    values = [F.col("headers")[number]["value"] for number in range(len(names))]
    return records.select(F.col("key").cast(BINARY), F.col("value").cast(BINARY), *values)


def header_names(meaning: Meaning, keeps_event: bool) -> tuple[str, ...]:
    """The headers of each result of a query, in their order."""
    return (*(_OF_EVENT if keeps_event else ()), QUERY, KIND, *((KEY_COLUMNS,) if meaning.key_names else ()))


def value_columns(columns: list[str]) -> list[str]:
    """The columns that become the JSON of a result."""
    return [name for name in columns if name not in (EVENT, HEADERS)]


def _value(result: DataFrame, form: RecordFormat) -> Column:
    columns = [F.col(f"`{name}`") for name in value_columns(result.columns)]
    if form is RecordFormat.CSV:
        return F.to_csv(F.struct(*columns), _TIME_OPTIONS)
    if form is RecordFormat.JSON:
        return F.to_json(F.struct(*columns), {"ignoreNullFields": "false", **_TIME_OPTIONS})
    return columns[0]


def _key(result: DataFrame, meaning: Meaning) -> Column:
    if meaning.key is None:
        return F.lit(None).cast(STRING)
    texts = [_key_text(result, part, meaning.is_declared) for part in meaning.key]
    if not texts:
        return F.lit("")
    if len(texts) == 1:
        # A declared key may be absent, as that of any record; a group without a value is a group.
        return texts[0] if meaning.is_declared else F.coalesce(_unlike_null(texts[0]), F.lit(KEY_NULL))
    parts = [F.coalesce(_escaped(text), F.lit(KEY_NULL)) for text in texts]
    joined = F.concat_ws(KEY_JOINT, *parts)
    return F.when(F.coalesce(*texts).isNotNull(), joined) if meaning.is_declared else joined


def _key_text(result: DataFrame, part: KeyColumn, is_declared: bool) -> Column:
    """A part of a key as text; a moment is written as in the JSON of the result, unless the key is declared."""
    column = F.col(f"`{part.name}`")
    if part.is_window:
        column = column["start"]
    is_moment = part.is_window or isinstance(result.schema[part.name].dataType, T.TimestampType)
    return F.date_format(column, _TIME_FORMAT) if is_moment and not is_declared else column.cast(STRING)


def _unlike_null(text: Column) -> Column:
    return F.when(text == KEY_NULL, _escaped(text)).otherwise(text)


def _escaped(text: Column) -> Column:
    for plain, escaped in KEY_ESCAPES:
        text = F.replace(text, F.lit(plain), F.lit(escaped))
    return text


def _headers(query: str, meaning: Meaning, keeps_event: bool) -> Column:
    texts = [F.lit(query), F.lit(str(meaning.kind))]
    if meaning.key_names:
        texts.append(F.lit(",".join(meaning.key_names)))
    if keeps_event:
        source = F.col(EVENT)
        place = source_text(source["topic"], source["partition"], source["offset"])
        texts = [source["id"], F.unix_millis(source["time"]).cast(STRING), place, *texts]
    return F.array(
        *(
            F.struct(F.lit(name).alias("key"), text.cast(BINARY).alias("value"))
            for name, text in zip(header_names(meaning, keeps_event), texts, strict=True)
        )
    )
