"""Runs one query on given records without a queue: at once as a batch, or piece by piece as a stream."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.analyze.driver_sink import TableRows
from penstock.analyze.emits import OUTPUT_MODES
from penstock.analyze.failures import failure_of, failure_text
from penstock.analyze.frames.call_sites import untold
from penstock.analyze.frames.dead_letters import letter_headers
from penstock.analyze.frames.meaning import Kind
from penstock.analyze.frames.plans import TABLE_ALIAS
from penstock.analyze.frames.results import with_flat_headers
from penstock.analyze.frames.rows import broken_rows
from penstock.analyze.frames.spark_types import BINARY, struct_words
from penstock.analyze.query_builder import Built, Refused, build_query_on
from penstock.analyze.session import session_of_query
from penstock.analyze.setting_names import setting_faults
from penstock.analyze.settings import query_settings, session_settings
from penstock.analyze.trial_records import DeadRecord, InputRecord, OutputRecord, QueryFailedError, Streamed
from penstock.config.analyze import AnalyzeConfig
from penstock.errors import ConfigError
from penstock.events.headers import REASON
from penstock.plan.plan import Plan, QueryPlan, TopicPlan
from penstock.plan.policies import Emit
from penstock.plan.tables import TablePlan

Rows = Mapping[str, Sequence[bytes]]  # the rows of tables as JSON

_RECORD = (
    "STRUCT<topic: STRING, partition: INT, offset: BIGINT, time_ms: BIGINT, value: BINARY, "
    "headers: ARRAY<STRUCT<key: STRING, value: BINARY>>>"
)
_ADAPTIVE = "spark.sql.adaptive.enabled"
_STREAMS_ONLY = "FlatMapGroupsInPandasWithState"
_BATCHES_EACH = 4  # a piece is a batch, and those without events that follow when the watermark moves


class QueryTrial:
    """One query on a Spark without a queue."""

    def __init__(self, query: QueryPlan, plan: Plan, config: AnalyzeConfig, spark: SparkSession) -> None:
        """ConfigError with every reason why the query cannot run."""
        self._query = query
        self._plan = plan
        self._spark = spark
        settings = session_settings(config, plan.app, Path(tempfile.gettempdir()), 1) | query_settings(query, config)
        self._settings = {
            name: setting
            for name, setting in settings.items()
            if name.startswith("spark.sql.") and spark.conf.isModifiable(name)
        }
        self._refuse(*setting_faults(query.spark, spark))
        if (module := sys.modules.get(getattr(query.function, "__module__", ""))) is not None:
            # Workers may not find the file of an app: its functions travel whole, as in a run.
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has no types
        session = self._session()
        built = self._build(session, _MemoryStream(session).lines, {})
        self._meaning = built.meaning
        self._query = replace(query, options=replace(query.options, emit=built.emit.emit))  # also for a batch

    @property
    def no_table(self) -> str | None:
        """Why its results are no table of the latest row of each key; None if they are one."""
        if self._meaning.kind is Kind.APPEND:
            return f"query {self._query.name} has no table: its rows replace no others, so look at all of them"
        return f"query {self._query.name} is {self._meaning.text}" if self._meaning.key is None else None

    def batch(self, records: Sequence[InputRecord], tables: Rows) -> list[OutputRecord]:
        """What the query writes if all records are there at once."""
        session = self._session()
        if _ADAPTIVE not in self._query.spark:
            session.conf.set(_ADAPTIVE, "false")  # to plan each stage anew takes longer than the rows of a test
        built = self._build(session, _local_lines(session, records), tables)
        if any(operator.name == _STREAMS_ONLY for operator in built.operators):
            raise self._config_error(["Spark runs applyInPandasWithState in streams only: test it with stream"])
        with tempfile.TemporaryDirectory(prefix="penstock-test-") as folder:
            try:
                return _writer(built, Path(folder))(built.records)
            except Exception as error:
                raise self._failed(error) from error

    def stream(self, pieces: Sequence[Sequence[InputRecord]], tables: Rows) -> Streamed:
        """What the query writes if the pieces arrive one after another, each as one micro-batch."""
        session = self._session()
        session.conf.set("spark.sql.streaming.pollingDelay", "10ms")
        session.conf.set("spark.sql.streaming.numRecentProgressUpdates", str(_BATCHES_EACH * (len(pieces) + 1)))
        source = _MemoryStream(session)
        built = self._build(session, source.lines, tables)
        written: list[list[OutputRecord]] = []

        query = None
        with tempfile.TemporaryDirectory(prefix="penstock-test-") as folder:
            outputs = _writer(built, Path(folder))

            def write(batch: DataFrame, _: int) -> None:
                written[-1] += outputs(batch)

            try:
                writer = built.records.writeStream.foreachBatch(write).outputMode(OUTPUT_MODES[built.emit.emit])
                query = writer.queryName(self._query.name).option("checkpointLocation", folder).start()
                for piece in pieces:
                    written.append([])
                    if piece:
                        source.add(piece)
                        query.processAllAvailable()
                late = sum(map(_late, query.recentProgress))
            except Exception as error:
                raise self._failed(error) from error
            finally:
                if query is not None:
                    query.stop()
        return Streamed(written, late)

    def dead(self, records: Sequence[InputRecord]) -> list[DeadRecord]:
        """The records that reach no query, with the reasons of their dead letters."""
        session = self._session()
        lines = _local_lines(session, records)
        found = []
        for topic in (self._plan.topics[name] for name in self._query.reads):
            for row in broken_rows(_records(lines, topic), topic).collect():
                reason = dict(letter_headers(row, topic))[REASON].decode()
                found.append(DeadRecord(topic.name, bytes(row["value"] or b""), reason))
        return found

    def _session(self) -> SparkSession:
        """A session with the settings of the query in a run, and views of its own."""
        return session_of_query(self._spark, self._settings)

    def _build(self, session: SparkSession, lines: DataFrame, tables: Rows) -> Built:
        given = {name: _table(session, self._plan.tables[name], tables.get(name, ())) for name in self._query.tables}
        try:
            return build_query_on(self._query, self._plan, session, lambda topic: _records(lines, topic), given)
        except Refused as refused:
            raise self._config_error(refused.faults) from refused

    def _refuse(self, *faults: str) -> None:
        if faults:
            raise self._config_error(faults)

    def _config_error(self, faults: Sequence[str]) -> ConfigError:
        return ConfigError(*(f"query {self._query.name}: {fault}" for fault in faults))

    def _failed(self, error: Exception) -> QueryFailedError:
        return QueryFailedError(f"query {self._query.name}: {failure_of(failure_text(error)).reason}")


class _MemoryStream:
    """Spark's own source for tests. One serves all topics of a query: a piece arrives at once."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        jvm: Any = session._jvm
        source = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
        self._stream = source.apply(session._jsparkSession, jvm.org.apache.spark.sql.Encoders.STRING())
        self.lines = DataFrame(self._stream.toDF(), session)

    def add(self, records: Sequence[InputRecord]) -> None:
        jvm: Any = self._session._jvm
        self._stream.addData(jvm.PythonUtils.toSeq(_java_lines(self._session, records)))


def _local_lines(session: SparkSession, records: Sequence[InputRecord]) -> DataFrame:
    return _text_rows(session, _java_lines(session, records))


@untold()
def _table(session: SparkSession, table: TablePlan, rows: Sequence[bytes]) -> DataFrame:
    """The table with these rows, each a JSON text of its schema."""
    if table.schema is None:
        raise ConfigError(f"table {table.name} has no schema: give it one to test its queries without its source")
    lines = _text_rows(session, _java_list(session, [row.decode() for row in rows]))
    found = lines.select(F.from_json(F.col("value"), struct_words(table.schema.columns)).alias("row"))
    return found.select("row.*").alias(f"{TABLE_ALIAS}{table.name}")


def _text_rows(session: SparkSession, lines: Any) -> DataFrame:
    jvm: Any = session._jvm
    java: Any = session._jsparkSession
    return DataFrame(java.createDataset(lines, jvm.org.apache.spark.sql.Encoders.STRING()).toDF(), session)


def _java_lines(session: SparkSession, records: Sequence[InputRecord]) -> Any:
    return _java_list(session, [msgspec.json.encode(record).decode() for record in records])


def _java_list(session: SparkSession, lines: Sequence[str]) -> Any:
    """A Java list of texts, in two calls whatever their number."""
    jvm: Any = session._jvm
    text = "\n".join(lines)
    return jvm.org.apache.commons.io.IOUtils.readLines(jvm.java.io.StringReader(text))


@untold()
def _records(lines: DataFrame, topic: TopicPlan) -> DataFrame:
    """The records of a topic with the columns that the connector of the queue gives."""
    # The condition is always true. The optimizer does not see that, and so does not copy the parsing into each column.
    record = F.when(F.spark_partition_id() >= 0, F.from_json(F.col("value"), _RECORD))
    found = lines.select(record.alias("record")).where(F.col("record.topic") == topic.name)
    return found.select(
        F.lit(None).cast(BINARY).alias("key"),
        *(F.col(f"record.{name}") for name in ("value", "topic", "partition", "offset")),
        F.timestamp_millis("record.time_ms").alias("timestamp"),
        F.lit(0).alias("timestampType"),
        F.col("record.headers"),
    )


def _writer(built: Built, folder: Path) -> Callable[[DataFrame], list[OutputRecord]]:
    """What a run writes of a batch: its rows, or how the whole result differs from the batch before."""
    names = built.header_names
    table = TableRows(folder / "result.table", built) if built.emit.emit is Emit.ALL else None

    def outputs(batch: DataFrame) -> list[OutputRecord]:
        if table is not None:
            rows = table.changes(batch, names)
            table.save()
        else:
            rows = [(row[0], row[1], row[2:]) for row in with_flat_headers(batch, names).collect()]
        return [
            OutputRecord(
                None if key is None else key.decode(),
                None if value is None else bytes(value),
                tuple((name, part.decode()) for name, part in zip(names, parts, strict=True) if part is not None),
            )
            for key, value, parts in rows
        ]

    return outputs


def _late(progress: Any) -> int:
    return sum(operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"])
