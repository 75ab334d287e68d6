"""Which rows of its result a query writes: what the app asks for, or what Spark can write; and remarks on its state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import PySparkException

from penstock.analyze.frames.plans import analyzed_plan, bare, has_watermark, is_window, items, name_of, nodes
from penstock.analyze.spark_text import spark_words
from penstock.errors import PenstockError
from penstock.plan.policies import Emit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTPUT_MODES = {Emit.CHANGES: "update", Emit.FINAL: "append", Emit.ALL: "complete"}
_ROWS = {Emit.CHANGES: "the changes", Emit.FINAL: "the final rows", Emit.ALL: "all rows"}
_UNSUPPORTED = re.compile(r"This output mode is not supported for (.*?)(?: on streaming DataFrames/DataSets)?\.$")
_GLOBAL_WATERMARK = "correctness' issue due to global watermark"
_SOME_TIME_MS = 10_000_000_000  # a Long to py4j: smaller ones are Integers


class EmitError(PenstockError):
    """Spark cannot write the rows that were asked for, or none at all."""


class ChosenEmit(NamedTuple):
    """What a query writes, and why that is not what most queries write."""

    emit: Emit
    reason: str | None = None

    @property
    def against_real_time(self) -> str | None:
        """Why the query cannot run in real time; None if this does not stand against it."""
        if self.emit is Emit.CHANGES:
            return None
        return f"emit='{self.emit}': not in Real-Time Mode{f'; {self.reason}' if self.reason else ''}"


def choose_emit(result: DataFrame, asked: Emit | None) -> ChosenEmit:
    """What is written of a result; EmitError with Spark's reason if that cannot be."""
    refused = {emit: words for emit in Emit if (words := _refusal(result, emit)) is not None}
    if asked is None:
        emit = next((emit for emit in Emit if emit not in refused), None)
        if emit is None:
            raise EmitError(refused[Emit.FINAL])
        return ChosenEmit(emit, refused.get(Emit.CHANGES))
    if asked not in refused:
        return ChosenEmit(asked)
    others = " or ".join(f"emit='{emit}'" for emit in Emit if emit not in refused)
    way_out = f": say {others}" if others else ""
    if asked is Emit.FINAL and "without watermark" in refused[asked]:
        way_out = f": give watermark=, and group by a window of the event time{f', or say {others}' if others else ''}"
    raise EmitError(f"emit='{asked}': {refused[asked]}{way_out}")


def _refusal(result: DataFrame, emit: Emit) -> str | None:
    """Why Spark does not write these rows of a result; None if it does. Spark checks it when a query starts."""
    jvm: Any = result.sparkSession._jvm
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, OUTPUT_MODES[emit].capitalize())()
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(analyzed_plan(result), mode)
    except PySparkException as error:
        words = spark_words(error)
        if _GLOBAL_WATERMARK in words:  # the text of Spark goes on with how to switch the check off
            return "an aggregate or join reads the rows of another, which may come later than its watermark"
        if unsupported := _UNSUPPORTED.search(words):
            return f"Spark does not write {_ROWS[emit]} of {unsupported[1]}"
        return words.rstrip(" ;")
    return None


def state_remarks(result: DataFrame) -> Iterator[str]:
    """Why the state of a query grows without end, where it does."""
    jvm: Any = result.sparkSession._jvm
    for node in nodes(analyzed_plan(result)):
        name, children = name_of(node), items(node.children())
        if name == "Deduplicate" and node.isStreaming() and not any(map(has_watermark, items(node.keys()))):
            yield (
                "dropDuplicates keeps every key for ever: give watermark= and add the event time to its columns, or "
                "use dropDuplicatesWithinWatermark"
            )
        elif name == "Join" and all(child.isStreaming() for child in children) and not _is_bounded(node, jvm):
            yield (
                "the join keeps every row of both sides for ever: give watermark=, and a condition on both event times "
                "such as b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR"
            )
        elif name == "Aggregate" and node.isStreaming() and _groups_by_open_window(node):
            yield "its windows never close, and their state is kept for ever: give watermark="


def _is_bounded(join: Any, jvm: Any) -> bool:
    """Whether Spark can drop rows of both sides of a join, as its own operator decides it."""
    helper = jvm.org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper
    if helper.isWatermarkInJoinKeys(join):
        return True
    left, right = join.left().outputSet(), join.right().outputSet()
    some_time = jvm.scala.Option.apply(_SOME_TIME_MS)
    return all(
        helper.getStateValueWatermark(mine, other, join.condition(), some_time).isDefined()
        for mine, other in ((left, right), (right, left))
    )


def _groups_by_open_window(aggregate: Any) -> bool:
    windows = [group for group in map(bare, items(aggregate.groupingExpressions())) if is_window(group)]
    return bool(windows) and not any(map(has_watermark, windows))
