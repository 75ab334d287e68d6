"""Every query as a streaming DataFrame before any of them starts, or every reason why one cannot be."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.analyze.frames.meaning import Meaning, meaning_of
from penstock.analyze.frames.results import header_names, to_records, value_columns
from penstock.analyze.frames.rows import EVENT, good_rows, read_records
from penstock.analyze.modes import Operator, is_stateful, operators_of
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan, QueryPlan, TopicPlan
from penstock.plan.policies import Repeats
from penstock.plan.sql import sql_with_views

_WORDS_MAX = 500
_PLACE_IN_SQL = re.compile(r"\(line \d+, pos \d+\)")
_NO_JSON = (T.BinaryType, T.CalendarIntervalType, T.VariantType, T.UserDefinedType)


@dataclass(frozen=True)
class Built:
    """A query that can be started."""

    query: QueryPlan
    records: DataFrame
    operators: tuple[Operator, ...]
    meaning: Meaning
    keeps_event: bool  # each result names the event that it came from

    @property
    def header_names(self) -> tuple[str, ...]:
        """The headers of each record, in their order."""
        return header_names(self.meaning, self.keeps_event)


class Refused(PenstockError):
    """A query cannot run as it is; every reason."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def build_query(
    query: QueryPlan,
    plan: Plan,
    spark: SparkSession,
    queue: KafkaTarget,
    starts: Mapping[str, str],
    options: Mapping[str, str],
) -> Built:
    """The query on its topics; Refused if it is none. `starts` has `startingOffsets` that differ, by topic."""
    frames = {}
    for name in query.reads:
        own = {**options, "startingOffsets": starts[name]} if name in starts else options
        rows = good_rows(read_records(spark, plan.topics[name], queue, own), plan.topics[name])
        if query.options.watermark and (column := plan.topics[name].event_time):
            rows = rows.withWatermark(column, query.options.watermark)
        frames[name] = rows
    result = _result(query, frames, spark)
    output = plan.topics[query.writes]
    operators = tuple(operators_of(result))
    faults = [*_column_faults(result, output), *_identity_faults(result, output, plan, query, operators)]
    if faults:
        raise Refused(*faults)
    try:
        _check_streaming(result)
        meaning = meaning_of(result, output.key)
        records = to_records(result, query.name, meaning)
        return Built(query, records, operators, meaning, EVENT in result.columns)
    except PySparkException as error:
        raise Refused(spark_words(error)) from error


def spark_words(error: BaseException) -> str:
    """What an error says, in one line; of Spark's errors without plans and traces."""
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not isinstance(error, PySparkException):
        return " ".join(lines)[:_WORDS_MAX]
    said, _, state = lines[0].partition(" SQLSTATE")
    place = _PLACE_IN_SQL.search(state)
    return f"{said} {place[0]}" if place else said[:_WORDS_MAX]


def _result(query: QueryPlan, frames: Mapping[str, DataFrame], spark: SparkSession) -> DataFrame:
    try:
        if query.sql is None:
            result: Any = query.function(*frames.values()) if query.function else None
        else:
            views = {name: f"penstock_{position}" for position, name in enumerate(frames)}
            for name, frame in frames.items():
                frame.createOrReplaceTempView(views[name])
            result = spark.sql(sql_with_views(query.sql, lambda topic: views[topic]))
    except Exception as error:  # the user's own code: whatever it raises is told, not thrown at them
        raise Refused(
            f"{_where(error, query)}{type(error).__name__}: {spark_words(error)}{_ml_words(error)}"
        ) from error
    if not isinstance(result, DataFrame):
        raise Refused(f"must return a DataFrame, not {type(result).__name__}: is there a return?")
    if not result.isStreaming:
        raise Refused("returns a DataFrame that does not come from what it reads: it is not streaming")
    return result


def _ml_words(error: Exception) -> str:
    """What to do where Spark runs without its machine learning: py4j then takes classes for packages."""
    is_missing = "pyspark.ml" in sys.modules and "'JavaPackage' object is not callable" in str(error)
    return " (Spark runs without its machine learning: set ml = true in [analyze])" if is_missing else ""


def _column_faults(result: DataFrame, output: TopicPlan) -> Iterator[str]:
    columns = value_columns(result.columns)
    if not columns:
        yield "the result has no columns but _event and _headers: select something"
    for name in dict.fromkeys(name for name in columns if columns.count(name) > 1):
        yield f"the result has {columns.count(name)} columns called {name}: rename all but one"
    for field in result.schema.fields:
        if field.name in columns and (inside := _no_json(field.dataType)):
            yield f"column {field.name} is {inside}, which JSON cannot carry: cast it, or leave it out"
    for name in output.key:
        if name not in columns:
            yield f"topic {output.name} has the key {name}, which the result lacks: add it to the select"
    for name in output.schema.required if output.schema else ():
        if name not in columns:
            yield f"topic {output.name} asks for the column {name} (NOT NULL), which the result lacks"
    if EVENT in result.columns:
        kind = result.schema[EVENT].dataType
        if not isinstance(kind, T.StructType) or not {"id", "time", "topic", "partition", "offset"} <= set(kind.names):
            yield "_event must be the struct that came with the row: do not make another of that name"


def _identity_faults(
    result: DataFrame, output: TopicPlan, plan: Plan, query: QueryPlan, operators: tuple[Operator, ...]
) -> Iterator[str]:
    if EVENT in result.columns or is_stateful(operators) or output.policy.deliver.repeats.value is Repeats.NONE:
        return
    known = [identity for topic in (output, *(plan.topics[n] for n in query.reads)) if (identity := topic.identity)]
    if any(set(identity) <= set(result.columns) for identity in known):
        return
    columns = f" nor the identity columns ({', '.join(known[0])})" if known else ""
    yield (
        f"the result keeps neither _event{columns}: after a crash some results are written again, and nobody "
        "could tell a repeat from a new one: add _event to the select"
        if columns
        else "the result does not keep _event: after a crash some results are written again, and nobody could tell "
        "a repeat from a new one: add _event to the select"
    )


def _no_json(kind: T.DataType) -> str | None:
    if isinstance(kind, _NO_JSON):
        return kind.simpleString().upper()
    inside: list[T.DataType] = []
    if isinstance(kind, T.StructType):
        inside = [field.dataType for field in kind.fields]
    elif isinstance(kind, T.ArrayType):
        inside = [kind.elementType]
    elif isinstance(kind, T.MapType):
        inside = [kind.keyType, kind.valueType]
    return next((found for part in inside if (found := _no_json(part))), None)


def _check_streaming(result: DataFrame) -> None:
    """Spark's own check of what a streaming query may do, which it else makes only at the start."""
    jvm: Any = result.sparkSession._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    update = jvm.org.apache.spark.sql.streaming.OutputMode.Update()
    frame: Any = result
    checker.checkForStreaming(frame._jdf.queryExecution().analyzed(), update)


def _where(error: BaseException, query: QueryPlan) -> str:
    if query.function is None:
        return ""
    code = getattr(query.function, "__code__", None)
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if code and f.filename == code.co_filename]
    return f"line {lines[-1]}: " if lines else ""
