"""Whether every query can run as it is, and in which mode: asked of Spark without a queue, before anything starts."""

from __future__ import annotations

import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.analyze.changes import Change, change_of, kept_then, refuse_changed
from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.fingerprint.of_query import fingerprint_of
from penstock.analyze.frames.meaning import Meaning
from penstock.analyze.jobs import Jobs
from penstock.analyze.modes import Choice, choose
from penstock.analyze.order_logs import FileLog
from penstock.analyze.query_builder import Refused
from penstock.analyze.standalone_session import NoSparkError, standalone_session
from penstock.analyze.worker_trial import fault_on_worker
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan
from penstock.plan.policies import Emit, Mode
from penstock.plan.run_spec import RunSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Checked", "NoSparkError", "check_queries"]

_NOWHERE = KafkaTarget.parse("127.0.0.1:1")  # Spark plans a query without asking the queue


class Checked(NamedTuple):
    """What Spark says of a query that can run."""

    choice: Choice
    emit: Emit
    meaning: Meaning
    remarks: tuple[str, ...]


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
                if fault := fault_on_worker(built.records, _warn):
                    raise Refused(fault)
            except Refused as refused:
                faults[query.name] = refused.faults
                continue
            checkpoint = Checkpoint(data / "analyze" / "checkpoints", query.name)
            kept = kept_then(checkpoint, query.name, (FileLog(data),))
            if change := change_of(query, checkpoint, kept, fingerprint_of(query, built), built.against_real_time):
                changes[query.name] = change
            choice = choose(query.mode, query.every_ms, built.against_real_time)
            found[query.name] = Checked(choice, built.emit.emit, built.meaning, built.remarks)
    refuse_changed(faults, changes, data)
    return found


def _warn(line: str) -> None:
    sys.stderr.write(f"penstock: {line}\n")


def _spark(plan: Plan, config: AnalyzeConfig, data: Path) -> AbstractContextManager[SparkSession]:
    return standalone_session(plan.app, config, data, slots=1)
