"""Whether every query can run as it is, and in which mode: asked of Spark without a queue, before anything starts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.analyze.changes import Change, change_of, kept_then, refuse_changed
from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.fingerprint.of_query import fingerprint_of
from penstock.analyze.frames.meaning import Meaning
from penstock.analyze.jobs import Jobs
from penstock.analyze.modes import Choice, choose, obstacle
from penstock.analyze.order_logs import FileLog
from penstock.analyze.query_builder import Refused
from penstock.analyze.session import open_session
from penstock.analyze.settings import session_settings
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.errors import PenstockError
from penstock.guarantee import Queue
from penstock.jvm.java import find_java
from penstock.jvm.spark_start import SparkStart
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan
from penstock.plan.policies import Mode
from penstock.plan.run_spec import RunSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class NoSparkError(PenstockError):
    """There is no Spark here that could be asked."""


_NOWHERE = KafkaTarget.parse("127.0.0.1:1")  # Spark plans a query without asking the queue


class Checked(NamedTuple):
    """What Spark says of a query that can run."""

    choice: Choice
    meaning: Meaning


def check_queries(plan: Plan, app: str, config: AnalyzeConfig, data: Path) -> dict[str, Checked]:
    """The mode of each query, and what its rows mean. `data` is the data folder of the run, which need not be there.

    ConfigError with every error of every query; NoSparkError if there is no Spark here.
    """
    faults: dict[str, tuple[str, ...]] = {}
    found = {}
    changes: dict[str, Change] = {}
    with tempfile.TemporaryDirectory() as folder, _spark(plan, config, Path(folder)) as spark:
        spec = RunSpec(app=app, data=folder, queue=_NOWHERE, kind=Queue(), edge=EdgeConfig(), analyze=config)
        jobs = Jobs(spec, plan, spark)
        for query in plan.queries.values():
            try:
                built = jobs.build(query, Choice(Mode.REALTIME))
            except Refused as refused:
                faults[query.name] = refused.faults
                continue
            against = query.against_real_time or obstacle(built.operators)
            checkpoint = Checkpoint(data / "analyze" / "checkpoints", query.name)
            kept = kept_then(checkpoint, query.name, (FileLog(data),))
            if change := change_of(query, checkpoint, kept, fingerprint_of(query, built.records)):
                changes[query.name] = change
            found[query.name] = Checked(choose(query.mode, query.every_ms, against), built.meaning)
    refuse_changed(faults, changes, data)
    return found


@contextmanager
def _spark(plan: Plan, config: AnalyzeConfig, data: Path) -> Iterator[SparkSession]:
    with spark_alone(plan.app, config, data) as spark:
        yield spark


@contextmanager
def spark_alone(app: str, config: AnalyzeConfig, data: Path) -> Iterator[SparkSession]:
    """A Spark on this machine for a moment, in an empty folder; NoSparkError if there is none."""
    try:
        start = SparkStart(find_java(os.environ), config, data)
        jvm = start.jvm(keep_open=())
    except PenstockError as missing:
        raise NoSparkError(str(missing)) from missing
    try:
        (data / "events").mkdir()
        settings = session_settings(replace(config, ui=False), app, data, 1)
        yield open_session(jvm, settings, compiler_yields=True)
    finally:
        start.end()
        jvm.end()
