"""How queries and dead letters are started on Spark, in their mode and on their checkpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.driver_sink import DriverSink, TableRows
from penstock.analyze.emits import OUTPUT_MODES
from penstock.analyze.exactly_once.transactional_sink import TransactionalSink
from penstock.analyze.frames.dead_letters import DeadLetters
from penstock.analyze.frames.rows import read_range
from penstock.analyze.kept import Kept
from penstock.analyze.late_events import LateEvents
from penstock.analyze.modes import Choice
from penstock.analyze.progress import Written
from penstock.analyze.query_builder import Built, Refused, build_query, result_on
from penstock.analyze.queue_probe import Queue
from penstock.analyze.record_writer import RecordWriter
from penstock.analyze.runner import Job
from penstock.analyze.session import session_of_query
from penstock.analyze.setting_names import setting_faults
from penstock.analyze.settings import commit_ms, query_settings
from penstock.analyze.tables import TableError, Tables
from penstock.client.factory import spark_options
from penstock.events.headers import batches_topic
from penstock.events.query_order import BEGINNING
from penstock.plan.plan import Plan, QueryPlan, TopicPlan
from penstock.plan.policies import Emit, Mode, Output
from penstock.plan.run_spec import RunSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_CLIENT = {"kafka.enable.metrics.push": "false"}  # nobody asks our broker for its clients' metrics
_SOURCE = _CLIENT | {"kafka.allow.auto.create.topics": "false", "failOnDataLoss": "true"}
# Results are written as they come; a batch of them would only wait.
_SINK = {
    Output.RETRY: _CLIENT | {"kafka.linger.ms": "0", "kafka.acks": "all", "kafka.enable.idempotence": "true"},
    Output.ONE_TRY: _CLIENT
    | {"kafka.linger.ms": "0", "kafka.acks": "1", "kafka.retries": "0", "kafka.enable.idempotence": "false"},
}


WriteBatch = Callable[["DataFrame", int], None]


class Jobs:
    """Everything that one app runs on one Spark."""

    def __init__(self, spec: RunSpec, plan: Plan, spark: SparkSession) -> None:
        self._spec = spec
        self._plan = plan
        self._spark = spark
        self.tables = Tables(plan.tables, Path(spec.data, "analyze", "tables"), spark)

    def build(self, query: QueryPlan, choice: Choice, starts: Mapping[str, str] = MappingProxyType({})) -> Built:
        """A query's DataFrame, in a session of its own; Refused with every reason why there is none.

        `starts` has Spark's `startingOffsets` of topics that do not start as the guarantee says.
        """
        if faults := setting_faults(query.spark, self._spark):
            raise Refused(*faults)
        session = session_of_query(self._spark, query_settings(query, self._spec.analyze))
        events_max = self._spec.analyze.batch_events_max
        if (bound := query.policy.batch_events_max) is not None:
            events_max = min(bound.value, events_max)
        options = source_options(choice, query.from_latest, events_max)
        try:
            tables = self.tables.frames(query, session)
        except TableError as error:
            raise Refused(str(error)) from error
        return build_query(query, self._plan, session, self._spec.queue, starts, tables, options)

    def of_query(self, query: QueryPlan, first: tuple[Choice, Built]) -> Job:
        """A query; `first` was built to look for faults, and serves the first start."""
        ready = [first]
        written: Written = {}

        def begin(choice: Choice, checkpoint: Path) -> StreamingQuery:
            at_hand = ready.pop() if ready else None
            starts = starting_offsets(Checkpoint(checkpoint.parent, checkpoint.name).kept(), query.reads)
            is_newest = self.tables.is_newest(query.name)
            is_at_hand = at_hand is not None and at_hand[0].mode is choice.mode and not starts and is_newest
            built = at_hand[1] if at_hand and is_at_hand else self.build(query, choice, starts)
            rows = _writer(built.records, query.name, checkpoint, built.emit.emit)
            writer = self._to_sink(rows, query, checkpoint, written, built)
            if choice.mode is Mode.REALTIME:
                writer = writer.trigger(realTime=f"{commit_ms(query)} milliseconds")
            elif query.every_ms is not None:
                writer = writer.trigger(processingTime=f"{query.every_ms} milliseconds")
            started: StreamingQuery = writer.start()
            return started

        return Job(
            query.name,
            query.reads,
            query.writes,
            begin,
            may_fall_back=query.mode is Mode.AUTO,
            from_latest=query.from_latest,
            keeps_event=first[1].keeps_event,
            written=written,
            state_rows_max=self._spec.analyze.state_rows_max,
            fence=self._fence(query) if query.is_transactional else None,
        )

    def _fence(self, query: QueryPlan) -> Callable[[Mapping[str, str]], None]:
        """Ends what wrote on the checkpoint before, and lets the numbers of batches begin again."""

        def fence(orders: Mapping[str, str]) -> None:
            batches = batches_topic(self._plan.app, query.name)
            TransactionalSink(query.writes, batches, self._spec.queue, Checkpoint(Path(), query.name), {}).reset(orders)

        return fence

    def _to_sink(self, writer: Any, query: QueryPlan, checkpoint: Path, written: Written, built: Built) -> Any:
        output = query.policy.output.value
        kept = Checkpoint(checkpoint.parent, checkpoint.name)
        headers = built.header_names
        table = None
        if built.emit.emit is Emit.ALL:
            ids = Queue(self._spec.queue).topic_ids([query.writes])
            table = TableRows(kept.table_file, built, f"{query.writes} {ids.get(query.writes, '')}")
        else:
            kept.table_file.unlink(missing_ok=True)  # it is true no longer
        if output is Output.TRANSACTION:
            batches = batches_topic(self._plan.app, query.name)
            sink = TransactionalSink(query.writes, batches, self._spec.queue, kept, written, headers, table)
            return writer.foreachBatch(self._with_late(query, kept, sink.write))
        if table is not None or query.keeps_late:
            records = RecordWriter(query.writes, self._spec.queue, has_retries=output is Output.RETRY)
            driver = DriverSink(records, kept, written, headers, table)
            return writer.foreachBatch(self._with_late(query, kept, driver.write))
        kafka = writer.format("kafka").options(**_SINK[output], **spark_options(self._spec.queue))
        return kafka.option("topic", query.writes)

    def _with_late(self, query: QueryPlan, kept: Checkpoint, write: WriteBatch) -> WriteBatch:
        """`write`, and before it the late events of the batch, if the query keeps them."""
        if not query.keeps_late:
            return write
        spark = session_of_query(self._spark, query_settings(query, self._spec.analyze))
        queue = self._spec.queue

        def read(topic: str, starts: Mapping[str, int], ends: Mapping[str, int]) -> DataFrame:
            return read_range(spark, self._plan.topics[topic], queue, starts, ends, _SOURCE)

        def result_of(raw: Mapping[str, DataFrame]) -> DataFrame:
            tables = self.tables.held_frames(query, spark)
            return result_on(query, self._plan, spark, lambda topic: raw[topic.name], tables)

        timed = [name for name in query.reads if self._plan.topics[name].event_time is not None]
        late = LateEvents(query, timed, queue, read, result_of)

        def write_both(batch: DataFrame, number: int) -> None:
            late.write(kept, number)
            write(batch, number)

        return write_both

    def of_dead_letters(self, topic: TopicPlan) -> Job:
        """The dead letters of a topic."""
        letters = DeadLetters(topic, self._spec.queue)
        every_ms = self._spec.analyze.dead_letters_every_ms

        def begin(choice: Choice, checkpoint: Path) -> StreamingQuery:
            frame = letters.frame(self._spark, source_options(choice, False, self._spec.analyze.batch_events_max))
            writer = _writer(frame, letters.name, checkpoint).foreachBatch(letters.write)
            started: StreamingQuery = writer.trigger(processingTime=f"{every_ms} milliseconds").start()
            return started

        return Job(letters.name, (topic.name,), letters.name, begin, written=letters.written)


def starting_offsets(kept: Kept, topics: Sequence[str]) -> dict[str, str]:
    """Spark's `startingOffsets` of each topic, where an order says from where to start; else empty."""
    if kept.begin == BEGINNING:
        return dict.fromkeys(topics, "earliest")
    return {topic: json.dumps({topic: dict(kept.starts[topic])}) for topic in topics if topic in kept.starts}


def source_options(choice: Choice, from_latest: bool, events_max: int) -> dict[str, str]:
    """How the connector reads in a mode."""
    options = _SOURCE | {"startingOffsets": "latest" if from_latest else "earliest"}
    if choice.mode is Mode.REALTIME:
        return options | {"kafka.fetch.max.wait.ms": "10"}
    return options | {"maxOffsetsPerTrigger": str(events_max)}


def _writer(frame: DataFrame, name: str, checkpoint: Path, emit: Emit = Emit.CHANGES) -> Any:
    # Any: PySpark's types do not know trigger(realTime=…).
    writer = frame.writeStream.queryName(name).outputMode(OUTPUT_MODES[emit])
    return writer.option("checkpointLocation", str(checkpoint))
