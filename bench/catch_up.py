"""Events a second while a query catches up with what is there: parse, filter, count by key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.child import result_of, run_child, start_child
from bench.path_apps import READS, WRITES
from bench.path_events import PARTITIONS, is_kept
from bench.path_run import our_app, our_checkpoint
from bench.plain_job import PlainJob
from bench.prepared import prepared_data
from bench.scene import KAFKA, NO_FSYNC, OURS, Scene
from penstock.errors import PenstockError

QUERY = "catch-up"
_WITHIN_S = 600.0


@dataclass(frozen=True)
class CatchUpTrial:
    """Micro-batches of a million events; the events are there before the query starts."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` from the plan of the first batch to the last result read; `whole_s` from the start of the process."""
        events = scene.pace.catch_up_events
        kept = sum(map(is_kept, range(1_000))) * (events // 1_000)
        with self._started(scene, events) as (queue, writes, checkpoint, started_at):
            reader = start_child("bench.result_reader", queue, writes, kept)
            ended_at = float(result_of(reader, _WITHIN_S)["at"])
            began_at = _first_batch_at(checkpoint)
        return {"rate": events / (ended_at - began_at), "whole_s": ended_at - started_at}

    @contextmanager
    def _started(self, scene: Scene, events: int) -> Iterator[tuple[str, str, Path, float]]:
        if self.side == OURS:
            app = our_app(scene, "catching")
            with prepared_data("catching", app.data) as queue:
                run_child("bench.fill", queue, READS, events)
            started_at = time.monotonic()
            app.start(ready=False)
            try:
                yield app.queue, WRITES, our_checkpoint(app, QUERY), started_at
            finally:
                app.kill()
            return
        with (
            scene.topic(KAFKA, NO_FSYNC, PARTITIONS) as (queue, reads),
            scene.topic(KAFKA, NO_FSYNC, PARTITIONS) as (_, writes),
        ):
            run_child("bench.fill", queue, reads, events)
            job = PlainJob(QUERY, queue, reads, writes, scene.fresh_folder("plain"))
            job.start()
            try:
                yield queue, writes, job.checkpoint, job.started_at
            finally:
                job.stop()


def _first_batch_at(checkpoint: Path) -> float:
    """When Spark wrote down what the first batch is to read, on the monotonic clock."""
    planned = checkpoint / "offsets" / "0"
    if not planned.exists():
        raise PenstockError(f"{planned} is not there: where does the query keep its checkpoint?")
    return planned.stat().st_mtime - time.time() + time.monotonic()
