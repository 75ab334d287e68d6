"""What will run, as values: topics, queries, doors, deliveries and their paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.app import Delivery, QueryOptions
from penstock.events.headers import dead_topic, late_topic
from penstock.events.record_format import RecordFormat
from penstock.events.schema import Schema
from penstock.guarantee import Guarantee, QueueKind, duration_ms
from penstock.plan.policies import AnalyzePolicy, Emit, Late, Mode, Modes, Output, Policy, Row, Start, StateStore
from penstock.plan.tables import TablePlan


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
    format: RecordFormat = RecordFormat.JSON

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
    """A query as it will run. Its guarantee is that of its output, as strong as its weakest input.

    `reads` are its topics. `inputs` are those and its tables, in the order of the function's arguments.
    """

    name: str
    reads: tuple[str, ...]
    inputs: tuple[str, ...]
    writes: str
    function: Callable[..., Any] | None
    sql: str | None
    output: str | None
    options: QueryOptions
    guarantee: Guarantee
    policy: AnalyzePolicy

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it joins. They have no guarantee and weaken none."""
        return tuple(name for name in self.inputs if name not in self.reads)

    @property
    def mode(self) -> Mode:
        """The mode that the app asks for; `app_faults` has refused every other text."""
        return Mode(self.options.mode)

    @property
    def state(self) -> StateStore:
        """Where it keeps its state; `app_faults` has refused every other text."""
        return StateStore(self.options.state)

    @property
    def emit(self) -> Emit | None:
        """Which rows the app wants written; None: changes, or the only ones that Spark can write."""
        return None if self.options.emit is None else Emit(self.options.emit)

    @property
    def keeps_late(self) -> bool:
        """Whether events that come after the watermark go to TOPIC.late."""
        return Late(self.options.late) is Late.KEEP

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
        """Whether the results of a batch and its token are committed together."""
        return self.policy.output.value is Output.TRANSACTION

    @property
    def from_latest(self) -> bool:
        """Whether each start begins with what comes from then on."""
        return self.policy.start.value is Start.LATEST

    @property
    def against_real_time(self) -> str | None:
        """Why its guarantee, or the rows that it writes, rule real time out; None if they do not."""
        modes = self.policy.modes
        if modes.value is Modes.MICROBATCH:
            return modes.reason
        if self.keeps_late:
            return "late='keep': not in Real-Time Mode"
        return None if self.emit in (None, Emit.CHANGES) else f"emit='{self.emit}': not in Real-Time Mode"

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
    tables: Mapping[str, TablePlan]
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
    def late_topics(self) -> dict[str, TopicPlan]:
        """Where the events go that come after the watermark of a query; kept as long as what they came from."""
        asking = [query for query in self.queries.values() if query.keeps_late]
        read = {name for query in asking for name in query.reads if self.topics[name].event_time is not None}
        return {late_topic(name): self.topics[name] for name in self.topics if name in read}

    @property
    def dead_topics(self) -> dict[str, TopicPlan]:
        """Where the events go that do not parse; kept as long as what they came from."""
        return {dead_topic(name): self.topics[name] for name in self.read_topics}


def _spark_text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
