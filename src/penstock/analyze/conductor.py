"""All queries of a run: Spark is started while the app is read, then every query is looked after until the end."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from penstock.analyze.checkpoints import Checkpoint, switch_fault
from penstock.analyze.event_logs import prune_event_logs
from penstock.analyze.jobs import Jobs
from penstock.analyze.lifecycle import Lifecycle, ready_words
from penstock.analyze.modes import Choice, choose, may_be_real_time
from penstock.analyze.progress import is_time_for_letters
from penstock.analyze.query_builder import Refused, refuse_all
from penstock.analyze.queue_probe import Queue
from penstock.analyze.reporter import Reporter
from penstock.analyze.result_latency import Newest
from penstock.analyze.runner import AnalyzeStatus, Job, Runner
from penstock.analyze.session import open_session
from penstock.analyze.settings import origins_of, session_settings, slots_needed
from penstock.analyze.task_slots import TaskSlots
from penstock.analyze.worker_trial import fault_on_worker
from penstock.client.lease import UNSAFE_AFTER_S
from penstock.errors import ConfigError, PenstockError
from penstock.events.query_status import QueryState, QueryStatus
from penstock.jvm.java import find_java
from penstock.jvm.spark import SparkJvm
from penstock.jvm.spark_start import SparkStart
from penstock.plan.plan import Plan
from penstock.plan.policies import Mode
from penstock.plan.run_spec import RunSpec
from penstock.process.run_spec_file import write_private
from penstock.process.supervisor_orders import Orders

_LOOK_S = 0.1
_TOPICS_S = 0.05
_HOUSE_S = 60.0


class Conductor:
    """Everything that runs on one Spark."""

    def __init__(
        self, spec: RunSpec, plan: Plan, data: Path, jvm: SparkJvm, start: SparkStart, orders: Orders | None = None
    ) -> None:
        self._spec = spec
        self._orders = orders
        self._plan = plan
        self._jvm = jvm
        self._start = start
        self._checkpoints = data / "checkpoints"
        self._events = data / "events"
        self._house_due_s = 0.0
        self._queue = Queue(spec.queue)
        # The queue may start at the same time as we do; then its topics will be as planned.
        there = self._queue.partitions() if self._queue.answers() else {}
        slots = slots_needed(plan, spec.analyze, os.cpu_count() or 1, there)
        settings = session_settings(spec.analyze, plan.app, data, slots)
        for folder in ("tmp", "events", "checkpoints"):
            (data / folder).mkdir(parents=True, exist_ok=True)
        origins = origins_of(settings, plan, spec.analyze)
        write_private(data / "spark-settings.json", json.dumps(origins, indent=1).encode())
        spark = open_session(jvm, settings, compiler_yields=self._may_be_real_time())
        self._ui = spark.sparkContext.uiWebUrl
        self._slots = TaskSlots(spark)
        self._jobs = Jobs(spec, plan, spark)
        self._runners: list[Runner] = []
        self._letters: list[Runner] = []  # not begun yet
        self._reporter = Reporter(self._queue, plan, self._statuses)

    def run(self, stopping: threading.Event) -> int:
        """Until `stopping`; ConfigError if a query cannot run as it is."""
        try:
            self._run(stopping)
        except Exception:
            # Whatever PySpark says when its JVM is gone, this is why.
            if self._jvm.ends_soon():
                raise PenstockError(f"Spark's JVM ended with status {self._jvm.process.returncode}") from None
            raise
        self._reporter.end()
        return 0

    def _run(self, stopping: threading.Event) -> None:
        self._build_all()
        say("checked: every query can run")
        self._await_topics(stopping)
        self._reporter.start()
        if self._ui:
            say(f"Spark's pages: {self._ui}")
        for runner in self._runners:
            self._begin(runner)
        say(ready_words([runner.life.state for runner in self._runners]))
        began_s = time.monotonic()
        while not stopping.wait(_LOOK_S):
            if self._jvm.has_ended:
                raise PenstockError("Spark's JVM ended")
            self._look_after(_now_ms())
            if self._letters and self._is_time_for_letters(time.monotonic() - began_s):
                self._runners, self._letters = self._runners + self._letters, []
            self._start.improve(time.monotonic())
            self._keep_house(time.monotonic())
        for runner in self._runners + self._letters:
            runner.leave()

    def _is_time_for_letters(self, since_s: float) -> bool:
        is_any_behind = any(runner.is_behind(self._reporter.ends) for runner in self._runners)
        return is_time_for_letters(since_s, have_all_begun=self._all_progressed(), is_any_behind=is_any_behind)

    def _all_progressed(self) -> bool:
        """Whether no real-time query has its first batch still before it."""
        return all(
            runner.numbers.checkpoint_ms is not None or runner.life.state is QueryState.PARKED
            for runner in self._runners
            if runner.choice.mode is Mode.REALTIME
        )

    def _await_topics(self, stopping: threading.Event) -> None:
        """The supervisor makes them while Spark starts, and takes the lease; without it no query may write."""
        wanted = {name for query in self._plan.queries.values() for name in (*query.reads, query.writes)}
        while not (self._is_leased and self._queue.answers() and wanted <= self._queue.partitions().keys()):
            if stopping.wait(_TOPICS_S) or self._jvm.has_ended:
                return

    def _topic_error(self, job: Job) -> str | None:
        """Why a query may not go on with one of its topics: Spark's producer would make a deleted one again."""
        errors = self._orders.topic_errors if self._orders is not None else {}
        return next((errors[topic] for topic in (*job.reads, job.writes) if topic in errors), None)

    @property
    def _is_leased(self) -> bool:
        return self._orders is None or self._orders.renewed_s is not None

    def _build_all(self) -> None:
        faults: dict[str, tuple[str, ...]] = {}
        for query in self._plan.queries.values():
            kept = self._checkpoint(query.name).remembered()
            try:
                if fault := switch_fault(query.mode, kept, query.against_real_time):
                    raise Refused(fault)
                built = self._jobs.build(query, Choice(Mode.REALTIME))
                if fault := fault_on_worker(built.records, say):
                    raise Refused(fault)
            except Refused as refused:
                faults[query.name] = refused.faults
                continue
            choice = kept or choose(query.mode, query.every_ms, built.against_real_time)
            self._runners.append(self._runner(self._jobs.of_query(query, (Choice(Mode.REALTIME), built)), choice))
        refuse_all(faults)
        for topic in self._plan.read_topics:
            letters = self._runner(self._jobs.of_dead_letters(self._plan.topics[topic]), Choice(Mode.MICROBATCH))
            letters.life.postpone("it begins when the queries have little before them")
            self._letters.append(letters)

    def _may_be_real_time(self) -> bool:
        return any(
            may_be_real_time(
                query.mode,
                query.every_ms,
                self._checkpoint(query.name).remembered(),
                query.against_real_time,
            )
            for query in self._plan.queries.values()
        )

    def _checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint(self._checkpoints, name)

    def _runner(self, job: Job, choice: Choice) -> Runner:
        life = Lifecycle(self._spec.analyze.restarts_max, self._spec.analyze.restart_window_ms)
        return Runner(job, choice, self._checkpoint(job.name), life, self._queue, self._start.worker_output)

    def _begin(self, runner: Runner) -> None:
        runner.start(_now_ms())
        why = f" ({runner.choice.reason})" if runner.choice.reason else ""
        fault = f": {runner.life.reason}" if runner.life.reason else ""
        say(f"query {runner.job.name}: {runner.life.state}, {runner.choice.mode}{why}{fault}")

    def _look_after(self, now_ms: int) -> None:
        for runner in self._runners:
            life = runner.life
            before = life.state, life.reason
            if life.state is not QueryState.PARKED and (error := self._topic_error(runner.job)):
                runner.park(error)
            life.on_queue(self._reporter.queue_answers, str(self._spec.queue))
            runner.look(now_ms)
            if life.wants_start(now_ms):
                runner.start(now_ms)
            if (life.state, life.reason) != before:
                said = f": {life.reason}" if life.reason else ""
                say(f"query {runner.job.name}: {life.state}{said}")
                self._reporter.changed()

    def _keep_house(self, now_s: float) -> None:
        if now_s >= self._house_due_s:
            self._house_due_s = now_s + _HOUSE_S
            prune_event_logs(self._events)

    def _statuses(self) -> list[QueryStatus]:
        shared = AnalyzeStatus(self._plan.app, self._ui, _now_ms(), self._slots.count())
        ends, newest, steady_ms = self._reporter.ends, self._reporter.newest, time.monotonic_ns() // 1_000_000
        return [
            runner.status(ends, newest.get(runner.job.writes, Newest()), steady_ms, shared)
            for runner in [*self._runners, *self._letters]
        ]


def say(line: str) -> None:
    """A line for people."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_LOCK_DEADLINE_S = 30.0
_LEASE_LOOK_S = 0.2


def run_queries(spec: RunSpec, orders: Orders | None) -> int:
    """Run the app's queries until SIGTERM; the exit status. With `orders`, only while the lease of the app is held."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, _give_up)  # while Spark starts nothing is under way that would have to end well
    data = Path(spec.data, "analyze")
    data.mkdir(parents=True, exist_ok=True)
    with _only_one(data / "lock") as lock:
        shutil.rmtree(data / "tmp", ignore_errors=True)
        start = SparkStart(find_java(os.environ), spec.analyze, data)
        jvm = start.jvm(keep_open=[lock.fileno()])
        sys.stdout.write(f"starting Spark, whose log is {data / 'spark.log'}\n")
        sys.stdout.flush()
        try:
            # The JVM starts while the app is read: neither needs the other. For the same reason these imports are here.
            from penstock.plan.planner import plan_app
            from penstock.process.app_loader import load_app

            plan = plan_app(load_app(spec.app), spec.kind)

            if orders is not None:
                threading.Thread(target=_end_when_unleased, args=(orders, jvm), name="lease", daemon=True).start()
            conductor = Conductor(spec, plan, data, jvm, start, orders)
            signal.signal(signal.SIGTERM, lambda *_: stopping.set())
            return conductor.run(stopping)
        finally:
            start.end()
            jvm.end()


def _end_when_unleased(orders: Orders, jvm: SparkJvm) -> None:
    """Kill Spark and this process once the lease is not renewed: soon another run may write the same results."""
    while orders.renewed_s is None or time.monotonic() - orders.renewed_s < UNSAFE_AFTER_S:
        time.sleep(_LEASE_LOOK_S)
    jvm.process.kill()
    sys.stderr.write(f"penstock: the lease of the app was not renewed for {UNSAFE_AFTER_S:.0f} s: queries stop\n")
    sys.stderr.flush()
    os._exit(1)


def _give_up(*_: object) -> None:
    raise SystemExit(0)


@contextmanager
def _only_one(path: Path) -> Iterator[IO[str]]:
    """The lock that an earlier run, or its JVM, may still hold for a moment: two of them would write the same twice."""
    with path.open("w") as file:
        deadline = time.monotonic() + _LOCK_DEADLINE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(f"another process runs queries on {path.parent}: stop it first") from None
                time.sleep(0.05)
        yield file
