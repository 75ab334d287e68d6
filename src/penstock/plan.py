"""From an app and a queue to everything that will run, or every reason why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.app import App, Delivery, Query, QueryOptions, Topic
from penstock.app_checks import SQL_ASIDE, STREAM, app_faults, checkable, promises, with_reads
from penstock.errors import ConfigError
from penstock.event import dead_topic
from penstock.guarantee import Guarantee, Queue, QueueKind, duration_ms, weakest
from penstock.policies import AnalyzePolicy, Modes, Output, Policy, Row, Start, policy_of
from penstock.schema import Schema, parse_schema


@dataclass(frozen=True)
class TopicPlan:
    """A topic as it will be: declared, or made because something writes it."""

    name: str
    schema: Schema | None
    key: tuple[str, ...]
    event_time: str | None
    identity: tuple[str, ...]
    partitions: int
    guarantee: Guarantee
    policy: Policy
    kind: QueueKind
    example: Mapping[str, Any] | None = None

    @property
    def queue_settings(self) -> dict[str, str]:
        """Settings the queue is given when the topic is made, but for copies."""
        return self.policy.queue.topic_settings(self.kind)

    @property
    def replicas(self) -> int:
        replicas = self.policy.queue.replicas
        return 1 if replicas is None else replicas.value

    @property
    def copies(self) -> tuple[int, int]:
        """Copies, and how many of them acknowledge, of a topic that Penstock makes."""
        min_insync = self.policy.queue.min_insync
        return self.replicas, 1 if min_insync is None else min_insync.value

    def rows_of(self, *tiers: str) -> list[Row]:
        """What follows from the guarantee in these tiers, with the reasons."""
        return [row for row in self.policy.rows(self.kind) if row.tier in tiers]


@dataclass(frozen=True)
class QueryPlan:
    """A query as it will run. Its guarantee is that of its output, as strong as its weakest input."""

    name: str
    reads: tuple[str, ...]
    writes: str
    function: Callable[..., Any] | None
    sql: str | None
    options: QueryOptions
    guarantee: Guarantee
    policy: AnalyzePolicy

    @property
    def every_ms(self) -> int | None:
        """How often it runs or commits, where the app says so."""
        return duration_ms(self.options.every) if self.options.every else None

    @property
    def commit_every_ms(self) -> int:
        """How often it commits in real time, by its guarantee; 0 if it commits with every batch."""
        return 0 if self.policy.commit_every_ms is None else self.policy.commit_every_ms.value

    @property
    def is_transactional(self) -> bool:
        """Whether its results and its position are committed together."""
        return self.policy.output.value is Output.TRANSACTION

    @property
    def from_latest(self) -> bool:
        """Whether each start begins with what comes from then on."""
        return self.policy.start.value is Start.LATEST

    @property
    def against_real_time(self) -> str | None:
        """Why its guarantee rules real time out; None if it does not."""
        modes = self.policy.modes
        return modes.reason if modes.value is Modes.MICROBATCH else None

    @property
    def spark(self) -> dict[str, str]:
        """Its own settings of Spark, as Spark reads them."""
        return {name: _spark_text(value) for name, value in self.options.spark.items()}


@dataclass(frozen=True)
class Door:
    """POST /ingest/<path> puts events into a topic."""

    path: str
    topic: str


@dataclass(frozen=True)
class Path:
    """The way of events to one delivery, and what holds of all of it.

    `links` are the topics on the way, sources first. `drawn` shows how queries connect them: `(a + b) -> c` is a query
    that reads a and b and writes c. An arrow binds tighter than a plus.
    """

    delivery: Delivery
    links: tuple[str, ...]
    drawn: str
    guarantee: Guarantee
    weakest_link: str  # empty where all links are alike


@dataclass(frozen=True)
class Plan:
    """Everything that will run."""

    app: str
    topics: Mapping[str, TopicPlan]
    queries: Mapping[str, QueryPlan]
    doors: Mapping[str, Door]
    deliveries: Mapping[str, Delivery]
    paths: tuple[Path, ...]

    def tiers_of(self, topic: str) -> list[str]:
        """Where a topic's guarantee has consequences."""
        tiers = ["queue"]
        tiers += ["ingest"] if any(door.topic == topic for door in self.doors.values()) else []
        tiers += ["analyze"] if any(query.writes == topic for query in self.queries.values()) else []
        tiers += ["deliver"] if any(delivery.topic == topic for delivery in self.deliveries.values()) else []
        return tiers

    @property
    def read_topics(self) -> list[str]:
        """Topics that a query reads and that have a schema: each has dead letters."""
        read = {topic for query in self.queries.values() for topic in query.reads}
        return [name for name in self.topics if name in read and self.topics[name].schema is not None]

    @property
    def dead_topics(self) -> dict[str, TopicPlan]:
        """Where the events go that do not parse; kept as long as what they came from."""
        return {dead_topic(name): self.topics[name] for name in self.read_topics}


def plan_app(app: App, queue: Queue) -> Plan:
    """The plan of an app on a queue; ConfigError with every fault there is."""
    faults = list(app_faults(app, queue))
    if faults:
        raise ConfigError(*faults)
    return _plan(app, queue)


def plan_to_check(app: App, queue: Queue) -> Plan:
    """The plan of what has no faults in an app that has some, to ask Spark about its queries; it cannot run."""
    return _plan(checkable(app, queue), queue)


def _plan(app: App, queue: Queue) -> Plan:
    declared = {topic.name: topic for topic in app.topics}
    queries = {query.name: query for query in map(with_reads, app.queries)}
    writer = {query.writes: query for query in queries.values()}
    promised = promises(app)
    topics: dict[str, TopicPlan] = {}
    for name in [*declared, *(output for output in writer if output not in declared)]:
        topic = declared.get(name, Topic(name))
        partitions = topic.partitions
        if partitions is None:
            inputs = writer[name].reads if name in writer else ()
            partitions = max((declared[i].partitions or 1 for i in inputs if i in declared), default=1)
        topics[name] = TopicPlan(
            name=name,
            schema=parse_schema(topic.schema) if topic.schema else None,
            key=topic.key,
            event_time=topic.event_time,
            identity=topic.identity,
            partitions=partitions,
            guarantee=promised[name],
            policy=policy_of(promised[name], queue),
            kind=queue.kind,
            example=topic.example,
        )
    deliveries = {delivery.at: delivery for delivery in app.deliveries}
    doors = [Door(ingest.source.path.strip("/") or ingest.into, ingest.into) for ingest in app.ingests]
    return Plan(
        app=app.name,
        topics=topics,
        queries={name: _plan_query(query, topics) for name, query in queries.items()},
        doors={door.path: door for door in doors},
        deliveries=deliveries,
        paths=tuple(_path(delivery, writer, topics) for delivery in deliveries.values()),
    )


def sql_with_views(sql: str, view: Callable[[str], str]) -> str:
    """The text with each STREAM(topic) replaced by `view(topic)`; comments and strings stay."""
    parts, position = [], 0
    for aside in SQL_ASIDE.finditer(sql):
        parts += [STREAM.sub(lambda m: view(m[1].strip("`")), sql[position : aside.start()]), aside[0]]
        position = aside.end()
    return "".join([*parts, STREAM.sub(lambda m: view(m[1].strip("`")), sql[position:])])


def _plan_query(query: Query, topics: Mapping[str, TopicPlan]) -> QueryPlan:
    output = topics[query.writes]
    return QueryPlan(
        name=query.name,
        reads=query.reads,
        writes=query.writes,
        function=query.function,
        sql=query.sql,
        options=query.options,
        guarantee=output.guarantee,
        policy=output.policy.analyze,
    )


def _spark_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(delivery: Delivery, writer: Mapping[str, Query], topics: Mapping[str, TopicPlan]) -> Path:
    links = [delivery.topic]
    for name in links:
        if name in writer:
            links += [before for before in writer[name].reads if before not in links]
    links.reverse()
    whole = weakest(*(topics[name].guarantee for name in links))
    weak = "" if all(topics[name].guarantee == whole for name in links) else _weak_link(links, whole, topics)
    return Path(delivery, tuple(links), _drawn(delivery.topic, writer, set()), whole, weak)


def _drawn(topic: str, writer: Mapping[str, Query], seen: set[str]) -> str:
    """How events reach a topic; what leads to a topic that several queries read is drawn once."""
    if topic not in writer or topic in seen:
        return topic
    seen.add(topic)
    inputs = [_drawn(name, writer, seen) for name in writer[topic].reads]
    joined = " + ".join(inputs)
    return f"({joined}) -> {topic}" if len(inputs) > 1 else f"{joined} -> {topic}"


def _weak_link(links: list[str], whole: Guarantee, topics: Mapping[str, TopicPlan]) -> str:
    """The first link but for which the whole would be stronger; where several are as weak, the first of them."""
    for name in links:
        others = [topics[other].guarantee for other in links if other != name]
        if weakest(*others) != whole:
            return name
    return next((name for name in links if topics[name].guarantee == whole), links[0])
