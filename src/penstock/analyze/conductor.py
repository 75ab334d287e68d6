"""Builds every query, starts them, and looks after all of them until the end."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from pathlib import Path

from penstock.analyze.building import Built, Refused, build_query, refuse_all
from penstock.analyze.checkpoints import Checkpoint, switch_fault
from penstock.analyze.life import Life
from penstock.analyze.modes import Choice
from penstock.analyze.queue import Queue
from penstock.analyze.runner import Runner
from penstock.analyze.session import open_session, session_of_query
from penstock.analyze.settings import query_settings, session_settings, slots_needed
from penstock.errors import PenstockError
from penstock.jvm.spark import SparkJvm
from penstock.plan import Plan, QueryPlan
from penstock.run_spec import RunSpec

_LOOK_S = 0.1


class Conductor:
    """Everything that runs on one Spark."""

    def __init__(self, spec: RunSpec, plan: Plan, data: Path, jvm: SparkJvm) -> None:
        self._spec = spec
        self._plan = plan
        self._data = data
        self._jvm = jvm
        self._queue = Queue(spec.queue)
        slots = slots_needed(plan, spec.analyze, os.cpu_count() or 1, self._queue.partitions())
        self._settings = session_settings(spec.analyze, plan.app, data, slots)
        for folder in ("tmp", "events", "checkpoints"):
            (data / folder).mkdir(parents=True, exist_ok=True)
        self._spark = open_session(jvm, self._settings)
        self._runners: list[Runner] = []

    def run(self, stopping: threading.Event) -> int:
        """Until `stopping`; ConfigError if a query cannot run as it is."""
        self._build_all()
        for runner in self._runners:
            runner.start(_now_ms())
            why = f" ({runner.choice.reason})" if runner.choice.reason else ""
            say(f"query {runner.name}: {runner.life.state}, {runner.choice.mode}{why}")
        say(f"ready {len(self._runners)} queries")
        while not stopping.wait(_LOOK_S):
            if self._jvm.has_ended:
                raise PenstockError(f"Spark's JVM ended with status {self._jvm.process.returncode}")
            self._look_after(_now_ms())
        for runner in self._runners:
            runner.stop()
        return 0

    def _build_all(self) -> None:
        faults: dict[str, tuple[str, ...]] = {}
        for query in self._plan.queries.values():
            checkpoint = Checkpoint(self._data / "checkpoints", query.name)
            try:
                built = self._build(query, Choice("realtime"))
                if fault := switch_fault(query.mode, checkpoint.remembered()):
                    raise Refused(fault)
            except Refused as refused:
                faults[query.name] = refused.faults
                continue
            life = Life(self._spec.analyze.restarts_max, self._spec.analyze.restart_window_ms)
            build = functools.partial(self._build, query)
            self._runners.append(Runner(built, build, checkpoint, self._spec.queue, life))
        refuse_all(faults)

    def _build(self, query: QueryPlan, choice: Choice) -> Built:
        session = session_of_query(self._spark, query_settings(query, self._spec.analyze))
        options = source_options(query, choice, self._spec.analyze.events_max_batch)
        return build_query(query, self._plan, session, self._spec.queue, options)

    def _look_after(self, now_ms: int) -> None:
        for runner in self._runners:
            if runner.look(now_ms) is not None:
                runner.checkpoint.sync()
            if runner.life.wants_start(now_ms):
                runner.start(now_ms)


def source_options(query: QueryPlan, choice: Choice, events_max: int) -> dict[str, str]:
    """How the connector reads for a query in its mode."""
    options = {"startingOffsets": "latest" if query.from_latest else "earliest", "failOnDataLoss": "true"}
    if choice.mode == "realtime":
        return options | {"kafka.fetch.max.wait.ms": "10"}
    return options | {"maxOffsetsPerTrigger": str(events_max)}


def say(line: str) -> None:
    """A line for people."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
