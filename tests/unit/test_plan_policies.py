"""What follows from a guarantee is done: each value of each policy is changed, and the behavior changes with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame

from penstock import App, Guarantee, sources
from penstock.analyze.emits import ChosenEmit
from penstock.analyze.frames.meaning import Kind, Meaning
from penstock.analyze.frames.rows import read_records
from penstock.analyze.jobs import Jobs, source_options
from penstock.analyze.modes import Choice, choose
from penstock.analyze.query_builder import Built, _identity_faults
from penstock.analyze.settings import commit_ms
from penstock.client.producer import EventProducer
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.connectors.live.hub import RefusedError
from penstock.connectors.live.routes import Live
from penstock.edge.intake import Intake
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan import checks
from penstock.plan.plan import Plan, TopicPlan
from penstock.plan.planner import plan_app
from penstock.plan.policies import (
    Acks,
    AnalyzePolicy,
    Chosen,
    DeliveryPolicy,
    Durability,
    Emit,
    IngestPolicy,
    Isolation,
    Mode,
    Modes,
    Output,
    Overload,
    Policy,
    QueuePolicy,
    Repeats,
    Start,
    delivery_policy,
    policy_of,
)
from penstock.plan.run_spec import RunSpec
from penstock.plan.topics import wanted_topics

NOTHING: Any = None
BUILT = Built(NOTHING, NOTHING, (), ChosenEmit(Emit.CHANGES), Meaning(Kind.APPEND, None), keeps_event=False)
ADDRESS = KafkaTarget.parse("127.0.0.1:1")
CLUSTER = Queue("kafka", 3)
Look = Callable[[Plan], object]


def keep(clicks: DataFrame) -> DataFrame:
    return clicks


def planned(queue: Queue = CLUSTER) -> Plan:
    app = App("shop")
    app.topic("clicks", schema="id STRING", key="id", partitions=1)
    app.ingest(sources.Http(), into="clicks")
    app.query(reads="clicks", writes="kept")(keep)
    app.deliver("kept")
    return plan_app(app, queue)


def changed(plan: Plan, tier: str, name: str, value: object) -> Plan:
    """The plan with one value of one policy of both topics replaced."""

    def of(topic: TopicPlan) -> TopicPlan:
        part = getattr(topic.policy, tier)
        policy = replace(topic.policy, **{tier: replace(part, **{name: Chosen(value, "a test")})})
        return replace(topic, policy=policy)

    topics = {key: of(topic) for key, topic in plan.topics.items()}
    queries = {key: replace(q, policy=topics[q.writes].policy.analyze) for key, q in plan.queries.items()}
    return replace(plan, topics=topics, queries=queries)


def in_the_queue(plan: Plan) -> object:
    clicks = next(wanted_topics(plan))
    return clicks.replicas, dict(clicks.settings)


def required_copies(plan: Plan) -> object:
    return next(wanted_topics(plan)).needs_copies


def of_the_producer(plan: Plan) -> object:
    """What librdkafka is told."""

    async def look() -> object:
        try:
            producer = EventProducer(ADDRESS, plan, deadline_ms=1000, buffer_bytes_max=2**20, limit=lambda _: None)
        except KafkaException as refused:  # librdkafka does not take acks=1 with idempotence
            return refused.args[0].str()
        told = producer._configuration(producer._settings["clicks"])
        await producer.close()
        return {name: told[name] for name in ("acks", "retries", "enable.idempotence")}

    return asyncio.run(look())


def drops(plan: Plan) -> object:
    async def look() -> object:
        nothing: Any = None
        return Intake(plan, EdgeConfig(), nothing, nothing).drops("clicks")

    return asyncio.run(look())


class Recorder:
    """Takes any chain of calls that Spark's readers and writers take, and remembers it."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def __getattr__(self, name: str) -> Any:
        def call(*values: object, **options: object) -> Recorder:
            self.calls.append((name, [str(value)[:40] for value in values if not callable(value)], options))
            return self

        return call

    @property
    def readStream(self) -> Recorder:  # Spark's name
        return self


def sink_of(plan: Plan) -> object:
    writer, spark = Recorder(), Recorder()
    spec = RunSpec(app="", data="", queue=ADDRESS, kind=CLUSTER, edge=EdgeConfig(), analyze=AnalyzeConfig())
    jobs: Any = Jobs(spec, plan, spark)  # type: ignore[arg-type]  # a recorder in its place
    jobs._to_sink(writer, plan.queries["keep"], Path("checkpoint"), {}, BUILT)
    return writer.calls


def batches_of(plan: Plan) -> object:
    return [wanted.name for wanted in wanted_topics(plan) if wanted.name.endswith(".batches")]


def beginning_of(plan: Plan) -> object:
    return source_options(Choice(Mode.MICROBATCH), plan.queries["keep"].from_latest, 1)["startingOffsets"]


def mode_of(plan: Plan) -> object:
    query = plan.queries["keep"]
    return choose(query.mode, query.every_ms, query.against_real_time)


def commit_of(plan: Plan) -> object:
    return commit_ms(plan.queries["keep"])


def batch_of(plan: Plan) -> object:
    """How many events Spark reads for a batch."""
    spark: Any = Recorder()
    jobs = Jobs(
        RunSpec(app="", data="", queue=ADDRESS, kind=CLUSTER, edge=EdgeConfig(), analyze=AnalyzeConfig()), plan, spark
    )
    asked: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.analyze.jobs.setting_faults", lambda *_: [])
        patch.setattr("penstock.analyze.jobs.session_of_query", lambda *_: spark)
        patch.setattr("penstock.analyze.jobs.build_query", lambda *given: asked.append(given[-1]))
        jobs.build(plan.queries["keep"], Choice(Mode.MICROBATCH))
    return asked


def reader_of(plan: Plan) -> object:
    spark: Any = Recorder()
    read_records(spark, plan.topics["clicks"], ADDRESS, {})
    return spark.calls


class SilentTail:
    """A reader of topics to which nothing comes."""

    async def follow(self, *_: object) -> None:
        await asyncio.Event().wait()


def resumed(plan: Plan) -> object:
    """Whether a client may come back with its token."""

    async def look() -> object:
        tail: Any = SilentTail()
        live = Live(plan, EdgeConfig(), tail, ADDRESS)
        scope = {"path_params": {"name": "kept"}, "query_string": b"after=kept%3D0:1", "headers": []}
        try:
            return live._ask(scope).start
        except RefusedError as refused:
            return refused.reason

    return asyncio.run(look())


class WithoutEvent:
    """A result that keeps neither _event nor an identity."""

    columns = ("id",)


def faults_of_results(plan: Plan) -> object:
    result: Any = WithoutEvent()
    return list(_identity_faults(result, plan.topics["kept"], plan, plan.queries["keep"], ()))


CHANGES: list[tuple[str, str, object, Look]] = [
    ("queue", "durability", Durability.MEMORY, in_the_queue),
    ("queue", "retention_ms", 1, in_the_queue),
    ("queue", "replicas", 2, in_the_queue),
    ("queue", "min_insync", 1, in_the_queue),
    ("queue", "copies_required", True, required_copies),
    ("ingest", "acks", Acks.LEADER, of_the_producer),
    ("ingest", "retries", 7, of_the_producer),
    ("ingest", "idempotent", False, of_the_producer),
    ("ingest", "overload", Overload.DROP, drops),
    ("analyze", "output", Output.TRANSACTION, sink_of),
    ("analyze", "output", Output.ONE_TRY, sink_of),
    ("analyze", "output", Output.TRANSACTION, batches_of),
    ("analyze", "start", Start.LATEST, beginning_of),
    ("analyze", "modes", Modes.MICROBATCH, mode_of),
    ("analyze", "commit_every_ms", 90_000, commit_of),
    ("analyze", "isolation", Isolation.COMMITTED, reader_of),
    ("analyze", "batch_events_max", 10, batch_of),
    ("deliver", "resume", False, resumed),
    ("deliver", "repeats", Repeats.NONE, faults_of_results),
]


@pytest.mark.parametrize(("tier", "name", "value", "look"), CHANGES, ids=lambda part: str(part)[:20])
def test_a_changed_value_changes_what_is_done(tier: str, name: str, value: object, look: Look) -> None:
    plan = planned()
    before = look(plan)
    assert look(plan) == before
    assert look(changed(plan, tier, name, value)) != before


def test_how_often_kafka_syncs_follows_the_bound_of_the_loss() -> None:
    policy = policy_of(Guarantee(loss="5 seconds"), CLUSTER).queue
    other = replace(policy, sync_every_ms=Chosen(9_000, "a test"))
    assert policy.topic_settings("kafka")["flush.ms"] == "5000"
    assert other.topic_settings("kafka")["flush.ms"] == "9000"


def test_a_delivery_that_may_not_skip_refuses_slow_clients_that_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("shop")
    app.topic("clicks", schema="id STRING")
    app.deliver("clicks", slow_client="drop_oldest")
    assert list(checks.app_faults(app, Queue())) == []

    def never(guarantee: Guarantee) -> DeliveryPolicy:
        return replace(delivery_policy(guarantee), may_skip=Chosen(False, "a test"))

    monkeypatch.setattr(checks, "delivery_policy", never)
    (fault,) = checks.app_faults(app, Queue())
    assert "slow_client='drop_oldest' leaves messages out" in fault


def test_every_value_of_every_policy_is_changed_above() -> None:
    """A value that nothing reads cannot be added without a test that fails."""
    tried = {(tier, name) for tier, name, _, _ in CHANGES} | {("queue", "sync_every_ms"), ("deliver", "may_skip")}
    policies = {"queue": QueuePolicy, "ingest": IngestPolicy, "analyze": AnalyzePolicy, "deliver": DeliveryPolicy}
    assert {field.name for field in fields(Policy)} == set(policies)
    assert all(is_dataclass(policy) for policy in policies.values())
    assert tried == {(tier, field.name) for tier, policy in policies.items() for field in fields(policy)}


def test_every_value_is_printed_with_its_reason() -> None:
    plan = planned()
    rows = plan.topics["kept"].rows_of("queue", "ingest", "analyze", "deliver")
    assert all(row.reason and row.value for row in rows)
    assert {row.tier for row in rows} == {"queue", "ingest", "analyze", "deliver"}
    assert len({(row.tier, row.name) for row in rows}) == len(rows) == 16
