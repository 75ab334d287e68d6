"""What follows from a guarantee, for each tier: typed values, each with its reason.

`--dry-run` prints the values that the tiers read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum, StrEnum
from typing import Generic, Literal, NamedTuple, TypeVar

from penstock.guarantee import (
    MEMORY_SYNC_MS,
    NO_HISTORY_MS,
    UNITS_MS,
    Guarantee,
    Queue,
    QueueKind,
    duration_ms,
    loss_ms,
)

T = TypeVar("T")
Tier = Literal["queue", "ingest", "analyze", "deliver"]

_FOR_EVER = -1
_NEVER_MS = 2**63 - 1
_RETRIES_MAX = 2**31 - 1
_SECOND = UNITS_MS["second"]
_TRANSACTION_EVENTS_MAX = 100_000


class Chosen(NamedTuple, Generic[T]):
    """A value and why it is that."""

    value: T
    reason: str


class Row(NamedTuple):
    """One value of a policy, as `--dry-run` and the documentation show it."""

    tier: Tier
    name: str
    value: str
    reason: str


class Durability(Enum):
    """What has to be true of a record before it is acknowledged."""

    DISK = "disk"
    MEMORY = "memory"


class Acks(Enum):
    """How many copies have a record before it is acknowledged, as Kafka's producers say it."""

    LEADER = "1"
    ALL = "all"


class Overload(Enum):
    """What becomes of an event for which there is no memory."""

    REFUSE = "refuse"
    DROP = "drop"


class Mode(StrEnum):
    """How Spark runs a query, as an app says it."""

    AUTO = "auto"
    REALTIME = "realtime"
    MICROBATCH = "microbatch"


class Emit(StrEnum):
    """Which rows of its result a query writes, as an app says it. Spark's names are update, append and complete."""

    CHANGES = "changes"  # each row that a batch changes
    FINAL = "final"  # each row once, when it can change no more
    ALL = "all"  # the whole result after each batch: what differs from the batch before, and a tombstone for what left


class Late(StrEnum):
    """What becomes of an event that comes after the watermark, as an app says it. It is counted in any case."""

    DROP = "drop"
    KEEP = "keep"  # it goes to TOPIC.late


class StateStore(StrEnum):
    """Where a query keeps its state, as an app says it."""

    DISK = "disk"
    MEMORY = "memory"


class Modes(Enum):
    """How Spark may run a query."""

    ANY = "any"
    MICROBATCH = "microbatch"


class Output(Enum):
    """How a query writes its results."""

    TRANSACTION = "transaction"
    RETRY = "retry"
    ONE_TRY = "one try"


class Start(Enum):
    """Where a query goes on after a stop."""

    CHECKPOINT = "checkpoint"
    LATEST = "latest"


class Isolation(Enum):
    """Which records of a topic a query reads."""

    COMMITTED = "committed"
    ALL = "all"


class Repeats(Enum):
    """How a reader meets a result that was written again."""

    NONE = "none"
    SAME_ID = "same id"


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """How the queue keeps a topic. `client/topics.py` makes topics with these settings."""

    durability: Chosen[Durability]
    sync_every_ms: Chosen[int] | None  # on a Kafka cluster, where loss has a bound
    retention_ms: Chosen[int]
    replicas: Chosen[int] | None  # None: the queue's own
    min_insync: Chosen[int] | None
    copies_required: Chosen[bool] | None = None  # plan/topics: whether fewer copies refuse a start

    def topic_settings(self, kind: QueueKind) -> dict[str, str]:
        """The settings that a topic is made with, by Kafka's names; copies are not a setting there."""
        return {row.name: row.value for row in self.rows(kind) if row.name not in (_REPLICAS, _COPIES_REQUIRED)}

    def rows(self, kind: QueueKind) -> Iterator[Row]:
        """Each value by Kafka's name."""
        yield self._durability(kind)
        yield Row("queue", "retention.ms", str(self.retention_ms.value), self.retention_ms.reason)
        if self.replicas is not None:
            yield Row("queue", _REPLICAS, str(self.replicas.value), self.replicas.reason)
        if self.min_insync is not None:
            yield Row("queue", "min.insync.replicas", str(self.min_insync.value), self.min_insync.reason)
        if self.copies_required is not None:
            value = _text(_COPIES_REQUIRED, self.copies_required.value)
            yield Row("queue", _COPIES_REQUIRED, value, self.copies_required.reason)

    def _durability(self, kind: QueueKind) -> Row:
        if kind == "penstock":
            return Row("queue", "penstock.durability", self.durability.value.value, self.durability.reason)
        if self.durability.value is Durability.DISK:
            return Row("queue", "flush.messages", "1", self.durability.reason)
        every = self.sync_every_ms or Chosen(_NEVER_MS, self.durability.reason)
        return Row("queue", "flush.ms", str(every.value), every.reason)


@dataclass(frozen=True, slots=True)
class IngestPolicy:
    """How a source stores events in a topic."""

    acks: Chosen[Acks]  # client/producer, as the next two
    retries: Chosen[int]
    idempotent: Chosen[bool]
    overload: Chosen[Overload]  # edge/intake

    def rows(self) -> Iterator[Row]:
        return _rows("ingest", self)


@dataclass(frozen=True, slots=True)
class AnalyzePolicy:
    """How a query writes this topic. `isolation` is how other queries read it."""

    output: Chosen[Output]  # analyze/jobs; plan/topics makes a topic of tokens for transactions
    start: Chosen[Start]  # plan/plan (from_latest): analyze/jobs, runner, changes
    modes: Chosen[Modes]  # plan/plan (against_real_time); plan/checks refuses a contradiction
    commit_every_ms: Chosen[int] | None  # analyze/settings; None: with every batch
    isolation: Chosen[Isolation]  # analyze/frames/rows
    batch_events_max: Chosen[int] | None = None  # analyze/jobs; None: the setting analyze.batch_events_max alone

    def rows(self) -> Iterator[Row]:
        return _rows("analyze", self)


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How a topic is delivered."""

    resume: Chosen[bool]  # connectors/live/routes
    repeats: Chosen[Repeats]  # analyze/query_builder: whether a result must keep `_event`
    may_skip: Chosen[bool]  # plan/checks

    def rows(self) -> Iterator[Row]:
        return _rows("deliver", self)


@dataclass(frozen=True, slots=True)
class Policy:
    """All that follows from the guarantee of a topic."""

    queue: QueuePolicy
    ingest: IngestPolicy
    analyze: AnalyzePolicy
    deliver: DeliveryPolicy

    def rows(self, kind: QueueKind) -> Iterator[Row]:
        """Every value with its reason."""
        yield from self.queue.rows(kind)
        yield from self.ingest.rows()
        yield from self.analyze.rows()
        yield from self.deliver.rows()


_REPLICAS = "replication.factor"
_COPIES_REQUIRED = "copies_required"


def policy_of(guarantee: Guarantee, queue: Queue) -> Policy:
    """What follows from a guarantee without errors, on this queue."""
    return Policy(_queue(guarantee, queue), _ingest(guarantee), analyze_policy(guarantee), delivery_policy(guarantee))


def _rows(tier: Tier, policy: IngestPolicy | AnalyzePolicy | DeliveryPolicy) -> Iterator[Row]:
    for field in fields(policy):
        chosen: Chosen[object] | None = getattr(policy, field.name)
        if chosen is not None:
            yield Row(tier, field.name.removesuffix("_ms"), _text(field.name, chosen.value), chosen.reason)


def _text(name: str, value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_ms") and isinstance(value, int) and value % _SECOND == 0:
        return f"{value // _SECOND} seconds"
    return str(value)


def _queue(guarantee: Guarantee, queue: Queue) -> QueuePolicy:
    durability, sync_every_ms = _durability(guarantee, queue.kind)
    replicas = min_insync = None
    if guarantee.outage == "catastrophic":
        replicas = Chosen(3, "an outage is catastrophic: one machine may be lost")
        min_insync = Chosen(2, "acknowledged means on two machines")
    elif queue.kind == "kafka":
        replicas = Chosen(min(3, queue.brokers), "as many copies as the cluster has room for, up to 3")
        if replicas.value == 3 and guarantee.loss == "none":
            min_insync = Chosen(2, "acknowledged means on two machines, so that the loss of one loses nothing")
    required = None
    if guarantee.outage == "catastrophic":
        required = Chosen(True, "fewer copies do not survive the loss of a machine: the start is refused")
    return QueuePolicy(durability, sync_every_ms, _retention(guarantee), replicas, min_insync, required)


def _durability(guarantee: Guarantee, kind: QueueKind) -> tuple[Chosen[Durability], Chosen[int] | None]:
    bound_ms = loss_ms(guarantee.loss)
    if bound_ms < MEMORY_SYNC_MS:
        why = (
            "nothing acknowledged may be lost"
            if guarantee.loss == "none" or kind == "kafka"
            else f"{guarantee.loss} is less than a memory topic keeps"
        )
        return Chosen(Durability.DISK, f"{why}: fsync before the acknowledgement"), None
    if guarantee.loss == "some":
        own = "loss is tolerable: acknowledged once written"
        cluster = "loss is tolerable: Kafka's own default, no fsync"
        return Chosen(Durability.MEMORY, own if kind == "penstock" else cluster), None
    own = f"up to {guarantee.loss} may be lost, and it is synced every second: acknowledged once written"
    return Chosen(Durability.MEMORY, own), Chosen(int(bound_ms), f"at most {guarantee.loss} may be lost")


def _retention(guarantee: Guarantee) -> Chosen[int]:
    if guarantee.history == "forever":
        return Chosen(_FOR_EVER, "history is kept for ever")
    if guarantee.history == "none":
        return Chosen(NO_HISTORY_MS, "no history: an hour, so that a query can catch up after an outage")
    asked_ms = duration_ms(guarantee.history)
    if asked_ms is None:
        raise ValueError(f"history is no duration: {guarantee.history!r}; the checks refuse it before")
    kept_ms = max(asked_ms, NO_HISTORY_MS)
    more = ", and an hour at least, so that a query can catch up" if kept_ms > asked_ms else ""
    return Chosen(kept_ms, f"history of {guarantee.history}{more}")


def _ingest(guarantee: Guarantee) -> IngestPolicy:
    if guarantee.delivery == "at-most-once":
        return IngestPolicy(
            acks=Chosen(Acks.LEADER, "at most once: one try, no waiting for copies"),
            retries=Chosen(0, "at most once: a retry could store an event twice"),
            idempotent=Chosen(False, "there are no retries that could double an event"),
            overload=Chosen(Overload.DROP, "what does not fit is dropped and counted; the sender is told 429"),
        )
    again = ""
    if guarantee.delivery == "exactly-once":
        again = (
            ". A sender that sends again stores a second event, with the same id if it gives one: drop it in the "
            "query, by dropDuplicates"
        )
    return IngestPolicy(
        acks=Chosen(Acks.ALL, "202 is sent when all in-sync replicas have acknowledged the event"),
        retries=Chosen(_RETRIES_MAX, "until delivery.timeout.ms: an outage of the queue is waited for"),
        idempotent=Chosen(True, f"a retry whose first try had arrived is recognised{again}"),
        overload=Chosen(Overload.REFUSE, "503 with Retry-After: nothing is accepted that could be lost"),
    )


def analyze_policy(guarantee: Guarantee) -> AnalyzePolicy:
    """How queries write a topic with this guarantee, and read it."""
    go_on = Chosen(Start.CHECKPOINT, "goes on where it stopped; the first time at the earliest event")
    any_mode = Chosen(Modes.ANY, "real time where Spark can do that, else micro-batches")
    everything = Chosen(Isolation.ALL, "no record of the topic is part of a transaction of a query")
    if guarantee.delivery == "exactly-once":
        return AnalyzePolicy(
            output=Chosen(
                Output.TRANSACTION,
                "the results of a batch and its token are committed together: a batch done again is recognised",
            ),
            start=go_on,
            modes=Chosen(Modes.MICROBATCH, "exactly-once: a result counts only with the whole batch it came from"),
            commit_every_ms=None,
            isolation=Chosen(Isolation.COMMITTED, "a result of a batch that was not committed is not read"),
            batch_events_max=Chosen(
                _TRANSACTION_EVENTS_MAX, "the results of a batch are in the driver's memory until they are committed"
            ),
        )
    seconds = {"catastrophic": 10, "costly": 30, "tolerable": 60}[guarantee.outage]
    commit = Chosen(
        seconds * _SECOND,
        "how much is done again after a crash, against how often a real-time query pauses for its commit",
    )
    if guarantee.delivery == "at-most-once":
        return AnalyzePolicy(
            output=Chosen(Output.ONE_TRY, "results are written once; a crash loses what was under way"),
            start=Chosen(Start.LATEST, "at most once: a new checkpoint at every start, from now on"),
            modes=any_mode,
            commit_every_ms=commit,
            isolation=everything,
        )
    return AnalyzePolicy(
        output=Chosen(
            Output.RETRY,
            "after a crash results since the last commit come again; with the same penstock-id if they keep _event",
        ),
        start=go_on,
        modes=any_mode,
        commit_every_ms=commit,
        isolation=everything,
    )


def delivery_policy(guarantee: Guarantee) -> DeliveryPolicy:
    """How a topic with this guarantee is delivered."""
    may_skip = Chosen(True, "a delivery may leave messages out for a slow client, and says how many")
    if guarantee.delivery == "at-most-once":
        return DeliveryPolicy(
            resume=Chosen(False, "fire and forget"),
            repeats=Chosen(Repeats.NONE, "nothing is sent twice, so there is nothing to drop"),
            may_skip=may_skip,
        )
    resume = Chosen(True, "every message has a token, and a client that comes back gets what it missed")
    if guarantee.delivery == "exactly-once":
        return DeliveryPolicy(
            resume=resume,
            repeats=Chosen(Repeats.NONE, "each result is stored once; deliveries read committed records only"),
            may_skip=Chosen(False, "every message counts: a client that is too slow is disconnected, and comes back"),
        )
    return DeliveryPolicy(
        resume=resume,
        repeats=Chosen(
            Repeats.SAME_ID,
            "a repeat that keeps _event has the same penstock-id: a consumer that counts must drop it",
        ),
        may_skip=may_skip,
    )
