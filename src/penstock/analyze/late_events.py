"""Writes the events that come after the watermark of a query to TOPIC.late, as they came.

Spark drops late rows inside its operators and says only how many. So the events of each batch are read once more, as a
batch of their own: an event is late if the query's first aggregate, join or dropDuplicates would drop all rows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.analyze.frames.plans import analyzed_plan, bare, has_watermark, id_of, is_window, items, name_of, nodes
from penstock.analyze.frames.rows import EVENT
from penstock.analyze.record_writer import DriverRecord, RecordWriter
from penstock.events.headers import QUERY, REASON, SOURCE, late_topic

if TYPE_CHECKING:
    from penstock.analyze.checkpoints import Checkpoint
    from penstock.kafka.target import KafkaTarget
    from penstock.plan.plan import QueryPlan

_STATEFUL = ("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Join")
_PLACE = ("topic", "partition", "offset")

Offsets = Mapping[str, int]  # by partition
ReadRange = Callable[[str, Offsets, Offsets], DataFrame]  # topic, first offsets, offsets behind the last: raw records
ResultOf = Callable[[Mapping[str, DataFrame]], DataFrame]  # the query on raw records of its topics


class LateEvents:
    """The late events of one query."""

    def __init__(
        self, query: QueryPlan, topics: list[str], queue: KafkaTarget, read: ReadRange, result_of: ResultOf
    ) -> None:
        """`topics` are those of its inputs that have an event time."""
        self._query = query
        self._writers = {topic: RecordWriter(late_topic(topic), queue) for topic in topics}
        self._read = read
        self._result_of = result_of

    def write(self, checkpoint: Checkpoint, number: int) -> int:
        """Write the late events of a batch before its results are: at least once; how many."""
        batch = checkpoint.range_of(number)
        if batch is None or batch.watermark_ms <= 0:
            return 0
        raw = {topic: self._read(topic, batch.starts.get(topic, {}), ends) for topic, ends in batch.ends.items()}
        late = late_places(self._result_of(raw), batch.watermark_ms)
        if late is None:
            return 0
        count = 0
        for topic, writer in self._writers.items():
            rows = raw[topic].join(late, list(_PLACE), "left_semi").orderBy("partition", "offset")
            count += writer.write(self._records(rows.toLocalIterator(), batch.watermark_ms))
        return count

    def _records(self, rows: Iterator[Any], watermark_ms: int) -> Iterator[DriverRecord]:
        reason = f"it came after the watermark of query {self._query.name}, {_moment(watermark_ms)}"
        for row in rows:
            ours = [
                (REASON, reason.encode()),
                (QUERY, self._query.name.encode()),
                (SOURCE, f"{row['topic']}/{row['partition']}/{row['offset']}".encode()),
            ]
            sent = [(header["key"], bytes(header["value"] or b"")) for header in row["headers"] or ()]
            yield _bytes(row["key"]), _bytes(row["value"]), [*sent, *ours]


def late_fault(result: DataFrame) -> str | None:
    """Why late events of a query cannot be found; None if they can."""
    operators = [inputs for inputs in _first_stateful(result) if inputs]
    if not operators:
        return "late='keep': only aggregates, joins of two topics and dropDuplicates say which events are late"
    for child, _ in chain.from_iterable(operators):
        if EVENT not in [attribute.name() for attribute in items(child.output())]:
            return "late='keep' needs _event up to the first aggregate, join or dropDuplicates: select it before that"
    return None


def late_places(result: DataFrame, watermark_ms: int) -> DataFrame | None:
    """Topic, partition and offset of the events of which a batch drops all rows; None if it never drops any."""
    frame: Any = result
    session: Any = result.sparkSession
    limit = F.timestamp_millis(F.lit(watermark_ms))
    found: DataFrame | None = None
    for inputs in _first_stateful(result):
        for child, attribute in inputs:
            output = items(child.output())
            at = [id_of(one) for one in output].index(id_of(attribute))
            event = [one.name() for one in output].index(EVENT)
            java = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(frame._jdf.sparkSession(), child)
            rows = DataFrame(java, session).toDF(*(f"c{position}" for position in range(len(output))))
            moment = F.col(f"c{at}")
            if is_window(attribute):
                moment = moment["end"]
            place = [F.col(f"c{event}")[part].alias(part) for part in _PLACE]
            dropped = rows.select(*place, F.coalesce(moment <= limit, F.lit(False)).alias("late"))
            found = dropped if found is None else found.unionByName(dropped)
    if found is None:
        return None
    return found.groupBy(*_PLACE).agg(F.every("late").alias("late")).where("late").select(*_PLACE)


def _first_stateful(result: DataFrame) -> Iterator[list[tuple[Any, Any]]]:
    """Of each stateful operator with none below it: the inputs of which it drops rows, each with the attribute."""
    for node in nodes(analyzed_plan(result)):
        children = items(node.children())
        if _keeps_state(node) and not any(map(_has_stateful, children)):
            inputs = [(child, _bounded(node, child)) for child in children]
            yield [(child, attribute) for child, attribute in inputs if attribute is not None]


def _bounded(node: Any, child: Any) -> Any:
    """The attribute of an input by which Spark drops rows; None if it drops none of them."""
    if name_of(node) == "Aggregate":
        attributes = [bare(group) for group in items(node.groupingExpressions())]
    elif name_of(node) == "Deduplicate":
        attributes = items(node.keys())
    else:
        attributes = items(child.output())
    return next((one for one in attributes if has_watermark(one)), None)


def _has_stateful(node: Any) -> bool:
    return _keeps_state(node) or any(map(_has_stateful, items(node.children())))


def _keeps_state(node: Any) -> bool:
    return name_of(node) in _STATEFUL and (name_of(node) != "Join" or _is_of_events(node))


def _is_of_events(join: Any) -> bool:
    """Whether both sides of a join have event times: a join with static data keeps no state."""
    return all(any(map(has_watermark, items(child.output()))) for child in items(join.children()))


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _moment(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
