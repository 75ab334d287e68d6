"""One query on Spark: starts it in its mode, looks after it, stops it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.analyze.building import Built, spark_words
from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.failures import Failure, failure_of
from penstock.analyze.life import Life
from penstock.analyze.modes import Choice, choose, obstacle
from penstock.analyze.settings import commit_ms

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Results are written as they come; a batch of them would only wait.
SINK_OPTIONS = {"kafka.linger.ms": "0", "kafka.acks": "all", "kafka.enable.idempotence": "true"}

Build = Callable[[Choice], Built]


class Runner:
    """A query and its life. `build` makes its DataFrame for a mode: a restart begins with a fresh one."""

    def __init__(self, built: Built, build: Build, checkpoint: Checkpoint, queue: str, life: Life) -> None:
        self.plan = built.query
        self.name = built.query.name
        self.life = life
        self.checkpoint = checkpoint
        self.choice = checkpoint.remembered() or choose(self.plan.mode, self.plan.every_ms, obstacle(built.operators))
        self._build = build
        self._queue = queue
        self._query: StreamingQuery | None = None
        self._batches = -1

    def start(self, now_ms: int) -> None:
        """Start it, now; what goes wrong is told to its life."""
        self.life.on_starting()
        if self.plan.from_latest:
            self.checkpoint.clear()
        try:
            self.checkpoint.remember(self.choice)
            self._query = self._start(self._build(self.choice))
        except Exception as error:  # noqa: BLE001  # the top of a supervisor: a query that cannot start must not end the others
            self._on_failure(failure_of(_told(error)), now_ms)
        else:
            self.life.on_started()

    def _start(self, built: Built) -> StreamingQuery:
        writer: Any = (  # PySpark's types do not know trigger(realTime=…)
            built.records.writeStream.format("kafka")
            .queryName(self.name)
            .outputMode("update")
            .option("kafka.bootstrap.servers", self._queue)
            .option("topic", self.plan.writes)
            .option("checkpointLocation", str(self.checkpoint.path))
            .options(**SINK_OPTIONS)
        )
        if self.choice.mode == "realtime":
            writer = writer.trigger(realTime=f"{commit_ms(self.plan)} milliseconds")
        elif self.plan.every_ms is not None:
            writer = writer.trigger(processingTime=f"{self.plan.every_ms} milliseconds")
        started: StreamingQuery = writer.start()
        return started

    def look(self, now_ms: int) -> Mapping[str, Any] | None:
        """What it did since the last look, or None; notices its end."""
        query = self._query
        if query is None:
            return None
        progress = query.lastProgress
        found = None
        if progress is not None and progress["batchId"] != self._batches:
            self._batches = progress["batchId"]
            self.life.on_progress()
            found = dict(progress)
        if not query.isActive:
            self._query = None
            self._on_failure(failure_of(_told(query.exception())), now_ms)
        return found

    def _on_failure(self, failure: Failure, now_ms: int) -> None:
        if failure.kind == "refused" and self.plan.mode == "auto" and self.choice.mode == "realtime":
            self.choice = Choice("microbatch", failure.reason)
            self.checkpoint.clear()  # nothing was done in it: Spark refuses before the first event
            self.life.on_ended(failure, now_ms)
        elif failure.kind == "refused":
            self.life.park(f"{failure.reason}: say mode='auto' or mode='microbatch'")
        else:
            self.life.on_ended(failure, now_ms)

    def stop(self) -> None:
        """Stop it; what it did since its last commit is done again at the next start."""
        query, self._query = self._query, None
        if query is not None:
            query.stop()
        self.life.on_stopped()


def _told(error: BaseException | None) -> str:
    if error is None:
        return ""
    return f"{spark_words(error)}\n{getattr(error, '_stackTrace', None) or error}"
