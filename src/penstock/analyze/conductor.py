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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from penstock.analyze.changes import Change, change_of, refuse_changed, remark_of
from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.event_logs import prune_event_logs
from penstock.analyze.fingerprint.comparison import Fingerprint
from penstock.analyze.fingerprint.of_query import fingerprint_of
from penstock.analyze.jobs import Jobs
from penstock.analyze.kept import obey, order_words, pass_over
from penstock.analyze.leftovers import Leftovers
from penstock.analyze.lifecycle import Lifecycle, ready_words
from penstock.analyze.modes import Choice, choose, may_be_real_time
from penstock.analyze.order_logs import FileLog, Log, TopicLog, first_pending
from penstock.analyze.progress import is_time_for_letters
from penstock.analyze.query_builder import Built, Refused
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
from penstock.events.headers import orders_topic
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
_ORDERS_S = 5.0
_QUEUE_S = 20.0
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
        self._folder = data / "checkpoints"
        self._checkpoints: dict[str, Checkpoint] = {}
        self._topic_log = TopicLog(spec.queue, plan.app, orders_topic(plan.app))
        self._logs: tuple[Log, ...] = (FileLog(data.parent), self._topic_log)
        self._leftovers = Leftovers(plan, spec.queue, self._folder, self._logs)
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
        self._outdated: set[str] = set()  # queries that join rows of a table that has others now
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
        self._build_all(stopping)
        say("checked: every query can run")
        self._await_topics(stopping)
        if orders_topic(self._plan.app) in self._queue.partitions():
            self._topic_log.is_read.wait(_ORDERS_S)
        for runner in self._runners:
            self._obey_before_start(runner.job.name)
        self._reporter.start()
        if self._ui:
            say(f"Spark's pages: {self._ui}")
        for runner in self._runners:
            self._begin(runner)
        say(ready_words([runner.life.state for runner in self._runners]))
        began_s = time.monotonic()
        self._jobs.tables.start(stopping)
        while not stopping.wait(_LOOK_S):
            if self._jvm.has_ended:
                raise PenstockError("Spark's JVM ended")
            self._obey()
            self._renew_tables()
            self._look_after(_now_ms())
            if self._letters and self._is_time_for_letters(time.monotonic() - began_s):
                self._runners, self._letters = self._runners + self._letters, []
            self._start.improve(time.monotonic())
            self._keep_house(time.monotonic())
        self._topic_log.end()
        for runner in self._runners + self._letters:
            runner.leave()

    def _is_time_for_letters(self, since_s: float) -> bool:
        is_any_behind = any(runner.is_behind(self._reporter.ends) for runner in self._runners)
        return is_time_for_letters(since_s, have_all_begun=self._all_progressed(), is_any_behind=is_any_behind)

    def _all_progressed(self) -> bool:
        """Whether no real-time query has its first batch still before it."""
        return all(
            runner.numbers.checkpoint_ms is not None or runner.life.state in (QueryState.PARKED, QueryState.PAUSED)
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

    def _build_all(self, stopping: threading.Event) -> None:
        self._topic_log.start()
        faults: dict[str, tuple[str, ...]] = {}
        built: dict[str, Built] = {}
        for query in self._plan.queries.values():
            self._obey_before_start(query.name)
            try:
                one = self._jobs.build(query, Choice(Mode.REALTIME))
                if fault := fault_on_worker(one.records, say):
                    raise Refused(fault)
                built[query.name] = one
            except Refused as refused:
                faults[query.name] = refused.faults
        prints = {name: fingerprint_of(self._plan.queries[name], one) for name, one in built.items()}
        if self._changes(built, prints):
            self._await_orders(stopping)  # the topic may say how to go on
        changes = self._changes(built, prints)
        refuse_changed(faults, changes, Path(self._spec.data))
        for name, one in built.items():
            query, checkpoint = self._plan.queries[name], self._checkpoint(name)
            if remark := remark_of(query, checkpoint, prints[name]):
                say(f"query {name}: {remark}")
            fresh = choose(query.mode, query.every_ms, one.against_real_time)
            job = self._jobs.of_query(query, (Choice(Mode.REALTIME), one))
            self._runners.append(self._runner(job, checkpoint.remembered() or fresh, prints[name], fresh))
        for topic in self._plan.read_topics:
            letters = self._runner(self._jobs.of_dead_letters(self._plan.topics[topic]), Choice(Mode.MICROBATCH))
            letters.life.postpone("it begins when the queries have little before them")
            self._letters.append(letters)

    def _changes(self, built: Mapping[str, Built], prints: Mapping[str, Fingerprint]) -> dict[str, Change]:
        """Why each query cannot go on from its checkpoint, of those that cannot."""
        found = {}
        for name, fingerprint in prints.items():
            checkpoint = self._checkpoint(name)
            query, against = self._plan.queries[name], built[name].against_real_time
            if change := change_of(query, checkpoint, checkpoint.kept(), fingerprint, against):
                found[name] = change
        return found

    def _await_orders(self, stopping: threading.Event) -> None:
        """The queue may start at the same time as Spark."""
        deadline = time.monotonic() + _QUEUE_S
        while not self._topic_log.is_read.wait(_LOOK_S) and time.monotonic() < deadline and not stopping.is_set():
            if self._queue.answers() and orders_topic(self._plan.app) not in self._queue.partitions():
                break
        for name in self._plan.queries:
            self._obey_before_start(name)

    def _obey_before_start(self, name: str) -> None:
        """Take what was ordered while the query did not run."""
        checkpoint = self._checkpoint(name)
        if not checkpoint.has_started:
            kept = checkpoint.kept()
            for log in self._logs:
                kept = pass_over(kept, [order for order in log.orders() if order.query == name], log.name)
            if kept != checkpoint.kept():
                checkpoint.keep(kept)
        while found := first_pending(self._logs, name, checkpoint.kept()):
            checkpoint.keep(obey(checkpoint.kept(), *found))
            say(f"query {name}: obeys the order to {order_words(found[0])}")

    def _obey(self) -> None:
        """Take what is ordered while the queries run."""
        for runner in self._runners:
            if runner.job.name not in self._plan.queries:
                continue
            if (found := first_pending(self._logs, runner.job.name, runner.kept)) and runner.obey(*found):
                say(f"query {runner.job.name}: obeyed the order to {order_words(found[0])}")
                self._reporter.changed()
        for line in self._leftovers.obey():
            say(line)
            self._reporter.changed()

    def _renew_tables(self) -> None:
        """Say what became of tables; a query that joins one that has other rows is started again with them."""
        tables = self._jobs.tables
        for news in tables.news():
            say(news.line)
            reading = {query.name for query in self._plan.queries.values() if news.table in query.tables}
            if news.is_changed:
                self._outdated |= reading
            for runner in self._runners:
                if runner.job.name in reading:
                    faults = [tables.faults.get(name) for name in self._plan.queries[runner.job.name].tables]
                    runner.remark = "; ".join(filter(None, faults)) or None
            self._reporter.changed()
        for runner in self._runners:
            if runner.job.name in self._outdated and runner.renew():
                self._outdated.discard(runner.job.name)

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
        """One object each: it remembers what is kept."""
        return self._checkpoints.setdefault(name, Checkpoint(self._folder, name))

    def _runner(
        self, job: Job, choice: Choice, fingerprint: Fingerprint | None = None, fresh: Choice | None = None
    ) -> Runner:
        life = Lifecycle(self._spec.analyze.restarts_max, self._spec.analyze.restart_window_ms)
        checkpoint, output = self._checkpoint(job.name), self._start.worker_output
        return Runner(job, choice, checkpoint, life, self._queue, output, fingerprint, fresh)

    def _begin(self, runner: Runner) -> None:
        if runner.kept.is_paused:
            runner.life.pause()
        else:
            runner.start(_now_ms())
        why = f" ({runner.choice.reason})" if runner.choice.reason else ""
        fault = f": {runner.life.reason}" if runner.life.reason else ""
        say(f"query {runner.job.name}: {runner.life.state}, {runner.choice.mode}{why}{fault}")

    def _look_after(self, now_ms: int) -> None:
        for runner in self._runners:
            life = runner.life
            before = life.state, life.reason
            if life.state not in (QueryState.PARKED, QueryState.PAUSED) and (error := self._topic_error(runner.job)):
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
            *(
                runner.status(ends, newest.get(runner.job.writes, Newest()), steady_ms, shared)
                for runner in [*self._runners, *self._letters]
            ),
            *self._leftovers.statuses(shared.at_ms),
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
