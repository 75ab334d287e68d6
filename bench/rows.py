"""The table: what is compared with what, and what must be reached."""

from __future__ import annotations

from bench.backlog import BacklogTrial
from bench.check import check_rows
from bench.consume import ConsumeTrial
from bench.core import CoreTrial
from bench.idle import IdleTrial
from bench.latency import LatencyTrial
from bench.memory import MemoryTrial
from bench.partitions import PartitionsTrial
from bench.path_rows import PATH_ROWS
from bench.produce import ProduceTrial
from bench.rebalance import RebalanceTrial
from bench.requests import RequestsTrial
from bench.row import Row, Trial
from bench.scene import FSYNC, KAFKA, NO_FSYNC, OURS
from bench.start import StartTrial
from bench.transactions import CommittedTrial, OwnersTrial, TransactionsTrial


def _produce() -> list[Row]:
    rows = []
    for label, size in (("100B", 100), ("1KB", 1000)):
        ours, ours_memory = ProduceTrial(OURS, size, FSYNC), ProduceTrial(OURS, size, NO_FSYNC)
        kafka, kafka_fsync = ProduceTrial(KAFKA, size, NO_FSYNC), ProduceTrial(KAFKA, size, FSYNC)
        ours_many, kafka_many = ProduceTrial(OURS, size, FSYNC, 64), ProduceTrial(KAFKA, size, FSYNC, 64)
        unit = "records/s"
        rows += [
            Row(f"produce-{label}", f"produce {label}, ours after fsync, Kafka without", unit, ours, kafka, "rate",
                goal=0.65, stretch=0.9),
            Row(f"produce-{label}-fsync", f"produce {label}, both after fsync", unit, ours, kafka_fsync, "rate",
                goal=1.8),
            Row(f"produce-{label}-nofsync", f"produce {label}, neither with fsync", unit, ours_memory, kafka, "rate",
                goal=1.1),
            Row(f"produce-{label}-fsync-64p", f"produce {label}, both after fsync, 64 partitions", unit, ours_many,
                kafka_many, "rate", goal=1.8),
        ]  # fmt: skip
    return rows


def _consume() -> list[Row]:
    rows = []
    for label, size in (("100B", 100), ("1KB", 1000)):
        for suffix, title, module, goal in (
            ("", "consume", "bench.read_client", 1.0),
            ("-raw", "fetch (a client that reads headers only)", "bench.read_raw", None),
        ):
            ours, kafka = (ConsumeTrial(side, size, module) for side in (OURS, KAFKA))
            rows.append(
                Row(f"consume-{label}{suffix}", f"{title} {label}", "records/s", ours, kafka, "rate", goal=goal)
            )
    return rows


def _requests() -> list[Row]:
    rows = []
    for window, goal in ((1, 1.2), (20, 2.5)):
        ours = RequestsTrial(OURS, window, FSYNC)
        name, title = f"requests-{window}-inflight", f"one record a request, 50 connections, {window} in flight"
        kafka, kafka_fsync = RequestsTrial(KAFKA, window, NO_FSYNC), RequestsTrial(KAFKA, window, FSYNC)
        rows += [
            Row(name, f"{title}, ours after fsync, Kafka without", "requests/s", ours, kafka, "rate", goal=goal),
            Row(f"{name}-fsync", f"{title}, both after fsync", "requests/s", ours, kafka_fsync, "rate"),
        ]
    return rows


def _latency() -> list[Row]:
    ours, kafka = LatencyTrial(OURS, FSYNC), LatencyTrial(KAFKA, NO_FSYNC)
    return [
        Row(f"e2e-{name}", f"end to end at 1,000/s, {name}, ours after fsync, Kafka without", "ms", ours, kafka, key,
            more_is_better=False, goal=goal)
        for name, key, goal in (("p50", "p50", 1.5), ("p99", "p99", 2.0), ("p99.9", "p999", None))
    ]  # fmt: skip


def _consumers() -> list[Row]:
    backlog, rebalance, idle = (
        [trial(side) for side in (OURS, KAFKA)] for trial in (BacklogTrial, RebalanceTrial, IdleTrial)
    )
    live = "live p99 beside a reader of 5 GB that no cache holds"
    return [
        Row("backlog-live-p99-times", f"{live}, times that without", "times", *backlog, "times", more_is_better=False,
            goal=1.5, is_goal_a_value=True),
        Row("backlog-live-p99", live, "ms", *backlog, "beside", more_is_better=False),
        Row("backlog-read", "that reader", "MB/s", *backlog, "rate"),
        Row("rebalance-100", "a group of 100 shares anew when one joins", "ms", *rebalance, "ms", more_is_better=False,
            goal=1.0),
        Row("idle-1000-cpu", "1,000 idle consumers, of one core", "%", *idle, "cpu", more_is_better=False),
        Row("idle-1000-memory", "1,000 idle consumers: memory", "MB", *idle, "megabytes", more_is_better=False),
    ]  # fmt: skip


def _transactions() -> list[Row]:
    rows = []
    for partitions in (1, 10):
        ours = TransactionsTrial(OURS, partitions, FSYNC)
        synced, plain = (TransactionsTrial(KAFKA, partitions, durability) for durability in (FSYNC, NO_FSYNC))
        name, title = f"transactions-{partitions}p", f"transactions of 100 records, partitions: {partitions}"
        rows += [
            Row(name, f"{title}, both with fsync", "/s", ours, synced, "rate", goal=1.5),
            Row(f"{name}-default", f"{title}, Kafka without", "/s", ours, plain, "rate"),
        ]
    committed, kafka_committed = (CommittedTrial(side) for side in (OURS, KAFKA))
    owners, kafka_owners = (OwnersTrial(side) for side in (OURS, KAFKA))
    many = "10,000 transactional ids"
    return [
        *rows,
        Row("read-committed", "reading what is committed, of an ordinary reader's rate", "part", committed,
            kafka_committed, "part",
            goal=0.9, is_goal_a_value=True),
        Row("owners-10000-memory", f"{many}: memory", "MB", owners, kafka_owners, "megabytes",
            more_is_better=False),
        Row("owners-10000-start", f"{many}: start to first ack", "s", owners, kafka_owners, "start",
            more_is_better=False),
    ]  # fmt: skip


def _costs() -> list[Row]:
    def both(name: str, title: str, unit: str, pair: list[Trial], value: str, goal: float | None = None) -> Row:
        return Row(name, title, unit, pair[0], pair[1], value, more_is_better=False, goal=goal)

    memory: list[Trial] = [MemoryTrial(side) for side in (OURS, KAFKA)]
    start: list[Trial] = [StartTrial(side) for side in (OURS, KAFKA)]
    many: list[Trial] = [PartitionsTrial(side) for side in (OURS, KAFKA)]
    core = "the pure core, a produce request"
    return [
        both("memory-after-load", "memory after the load", "MB", memory, "megabytes", 0.1),
        both("start-to-ack", "start to first acknowledged record", "s", start, "seconds", 0.1),
        Row("core-request-us", f"{core}, 50 a step", "us", CoreTrial(OURS), None, "us", False, 2.0),
        Row("core-request-alone-us", f"{core}, alone in its step", "us", CoreTrial(OURS, 1), None, "us", False),
        both("partitions-10000-create", "10,000 partitions: to make them", "s", many, "create"),
        both("partitions-10000-start", "10,000 partitions: start to first ack", "s", many, "start"),
        both("partitions-10000-idle-cpu", "10,000 partitions: idle, of one core", "%", many, "cpu"),
        both("partitions-10000-memory", "10,000 partitions: memory, one of them used", "MB", many, "megabytes"),
        both("partitions-10000-memory-used", "10,000 partitions: memory, all used", "MB", many, "megabytes_used"),
    ]


ROWS: list[Row] = [
    *_produce(),
    *_consume(),
    *_requests(),
    *_latency(),
    *_consumers(),
    *_transactions(),
    *_costs(),
    *check_rows(),
    *PATH_ROWS,
]


def chosen(names: str | None) -> list[Row]:
    """The rows of a comma-separated list, by name or beginning of a name; all without one."""
    if names is None:
        return ROWS
    wanted = names.split(",")
    unknown = [name for name in wanted if not any(row.name.startswith(name) for row in ROWS)]
    if unknown:
        raise SystemExit(f"no row is called {', '.join(unknown)}; there are: {', '.join(row.name for row in ROWS)}")
    exact = {row.name for row in ROWS} & set(wanted)
    begun = tuple(name for name in wanted if name not in exact)
    return [row for row in ROWS if row.name in exact or (begun and row.name.startswith(begun))]
