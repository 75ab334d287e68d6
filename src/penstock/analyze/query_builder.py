"""Every query as a streaming DataFrame before any of them starts, or every reason why one cannot be."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from penstock.analyze.emits import ChosenEmit, EmitError, choose_emit, state_remarks
from penstock.analyze.frames.meaning import Meaning, meaning_of
from penstock.analyze.frames.plans import WATERMARK
from penstock.analyze.frames.results import header_names, to_records, value_columns
from penstock.analyze.frames.rows import EVENT, good_rows, read_records
from penstock.analyze.function_references import unpicklable_words
from penstock.analyze.late_events import late_fault
from penstock.analyze.modes import Operator, is_stateful, obstacle, operators_of
from penstock.analyze.spark_text import spark_words
from penstock.errors import PenstockError
from penstock.events.headers import KEY_COLUMNS, KIND, QUERY
from penstock.events.record_format import RecordFormat
from penstock.guarantee import duration_ms
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan, QueryPlan, TopicPlan
from penstock.plan.policies import Emit, Mode, Repeats
from penstock.plan.sql import sql_with_views
from penstock.process.app_loader import MISSING_LIBRARY

_NO_JSON = (T.BinaryType, T.CalendarIntervalType, T.VariantType, T.UserDefinedType)


@dataclass(frozen=True)
class Built:
    """A query that can be started."""

    query: QueryPlan
    records: DataFrame
    operators: tuple[Operator, ...]
    emit: ChosenEmit
    meaning: Meaning
    keeps_event: bool  # each result names the event that it came from
    remarks: tuple[str, ...] = ()  # what the app should know of it, though it runs

    @property
    def tombstone_headers(self) -> tuple[bytes | None, ...]:
        """The headers of a tombstone of this query: it is of no event."""
        known = {QUERY: self.query.name, KIND: str(self.meaning.kind), KEY_COLUMNS: ",".join(self.meaning.key_names)}
        return tuple(known[name].encode() if name in known else None for name in self.header_names)

    @property
    def against_real_time(self) -> str | None:
        """Why it cannot run in real time, as far as can be told before Spark tries; None if nothing is known."""
        return self.query.against_real_time or self.emit.against_real_time or obstacle(self.operators)

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
    tables: Mapping[str, DataFrame],
    options: Mapping[str, str],
) -> Built:
    """The query on its topics; Refused if it is none. `starts` has `startingOffsets` that differ, by topic."""

    def records_of(topic: TopicPlan) -> DataFrame:
        own = {**options, "startingOffsets": starts[topic.name]} if topic.name in starts else options
        return read_records(spark, topic, queue, own)

    return build_query_on(query, plan, spark, records_of, tables)


def build_query_on(
    query: QueryPlan,
    plan: Plan,
    spark: SparkSession,
    records_of: Callable[[TopicPlan], DataFrame],
    tables: Mapping[str, DataFrame],
) -> Built:
    """The query on these records of its topics, which may be no stream, and these tables; Refused if it is none."""
    result = result_on(query, plan, spark, records_of, tables)
    output = plan.topics[query.writes]
    operators = tuple(operators_of(result))
    faults = [*_column_faults(result, output), *_identity_faults(result, output, plan, query, operators)]
    if query.keeps_late and result.isStreaming and (fault := late_fault(result)):
        faults.append(fault)
    if faults:
        raise Refused(*faults)
    try:
        # The rows of a batch are final, whatever the query writes of a stream.
        emit = choose_emit(result, query.emit) if result.isStreaming else ChosenEmit(query.emit or Emit.CHANGES)
        if query.mode is Mode.REALTIME and emit.against_real_time is not None:
            raise Refused(f"mode='realtime' cannot be: {emit.against_real_time}: say mode='microbatch'")
        meaning = meaning_of(result, output.key, emit.emit)
        if emit.emit is Emit.ALL and not meaning.is_ranked and (meaning.key is None or meaning.uncovered):
            raise Refused(f"emit='all' needs a key that tells all rows apart: {meaning.no_key or meaning.remark}")
        records = to_records(result, query.name, meaning, output.format)
        remarks = tuple(dict.fromkeys([*meaning.remarks, *state_remarks(result)]))
        return Built(query, records, operators, emit, meaning, EVENT in result.columns, remarks)
    except EmitError as error:
        raise Refused(str(error)) from error
    except PySparkException as error:
        raise Refused(spark_words(error)) from error


def result_on(
    query: QueryPlan,
    plan: Plan,
    spark: SparkSession,
    records_of: Callable[[TopicPlan], DataFrame],
    tables: Mapping[str, DataFrame],
) -> DataFrame:
    """What the query makes of these records of its topics, and its tables; Refused if that is no DataFrame of them."""
    frames = {}
    for name in query.inputs:
        if name in tables:
            frames[name] = tables[name]
            continue
        rows = good_rows(records_of(plan.topics[name]), plan.topics[name])
        if query.options.watermark and (column := plan.topics[name].event_time):
            # Spark drops the mark of the column from a batch, in which late events are looked for by it.
            marked = rows.withMetadata(column, {WATERMARK: duration_ms(query.options.watermark)})
            rows = rows.withWatermark(column, query.options.watermark) if rows.isStreaming else marked
        frames[name] = rows
    return _result(query, frames, spark)


def _result(query: QueryPlan, frames: Mapping[str, DataFrame], spark: SparkSession) -> DataFrame:
    try:
        if query.sql is None:
            result: Any = query.function(*frames.values()) if query.function else None
            if query.output is not None:
                result = _output(result, query.output)
        else:
            views = {name: f"penstock_{position}" for position, name in enumerate(frames)}
            for name, frame in frames.items():
                frame.createOrReplaceTempView(views[name])
            result = spark.sql(sql_with_views(query.sql, lambda name: views[name]))
    except Refused:
        raise
    except Exception as error:  # the user's own code: whatever it raises is told, not thrown at them
        name = "" if isinstance(error, PenstockError) else f"{type(error).__name__}: "
        said = unpicklable_words(error) or f"{name}{spark_words(error)}{_library_words(error)}"
        raise Refused(f"{_where(error, query)}{said}") from error
    if not isinstance(result, DataFrame):
        raise Refused(f"must return a DataFrame, not {type(result).__name__}: is there a return?")
    if not result.isStreaming and any(frame.isStreaming for frame in frames.values()):
        raise Refused("returns a DataFrame that does not come from what it reads: it is not streaming")
    return result


def _output(results: object, name: str) -> object:
    """One of the DataFrames that a function with several outputs returns."""
    if not isinstance(results, Mapping):
        raise Refused(f"must return a dict of DataFrames, one for each output, not {type(results).__name__}")
    if name not in results:
        raise Refused(f"returns no output {name!r}: it returns {', '.join(map(repr, results)) or 'none'}")
    return results[name]


def _library_words(error: Exception) -> str:
    """What to do about a library that is missing.

    Where Spark runs without its machine learning, py4j takes classes for packages.
    """
    if "PACKAGE_NOT_INSTALLED" in str(error):
        return MISSING_LIBRARY
    is_missing = "pyspark.ml" in sys.modules and "'JavaPackage' object is not callable" in str(error)
    return " (Spark runs without its machine learning: set ml = true in [analyze])" if is_missing else ""


def _column_faults(result: DataFrame, output: TopicPlan) -> Iterator[str]:
    columns = value_columns(result.columns)
    if not columns:
        yield "the result has no columns but _event and _headers: select something"
    for name in dict.fromkeys(name for name in columns if columns.count(name) > 1):
        yield f"the result has {columns.count(name)} columns called {name}: rename all but one"
    for field in result.schema.fields:
        if output.format is RecordFormat.JSON and field.name in columns and (inside := _no_json(field.dataType)):
            yield f"column {field.name} is {inside}, which JSON cannot carry: cast it, or leave it out"
    yield from _format_faults(result, columns, output)
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


def _format_faults(result: DataFrame, columns: list[str], output: TopicPlan) -> Iterator[str]:
    form = output.format
    kind = {RecordFormat.TEXT: "string", RecordFormat.BYTES: "binary"}.get(form)
    if kind is not None and [result.schema[name].dataType.typeName() for name in columns] != [kind]:
        yield (
            f"topic {output.name} has format='{form}': select one {kind.upper()} column, and _event or "
            f"_headers beside it, not {', '.join(columns)}"
        )
    if form is RecordFormat.CSV:
        for name in columns:
            if isinstance(result.schema[name].dataType, T.ArrayType | T.MapType | T.StructType | T.BinaryType):
                yield f"column {name} cannot be in a line of CSV (topic {output.name} has format='csv'): leave it out"


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


def _where(error: BaseException, query: QueryPlan) -> str:
    if query.function is None:
        return ""
    code = getattr(query.function, "__code__", None)
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if code and f.filename == code.co_filename]
    return f"line {lines[-1]}: " if lines else ""
