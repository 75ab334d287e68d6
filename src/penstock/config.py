"""Every setting, its default and its limit, once, with the reason."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_origin, get_type_hints

from penstock.errors import ConfigError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND_MS = 1000
HOUR_MS = 3600 * SECOND_MS
DAY_MS = 24 * HOUR_MS


Settings = TypeVar("Settings")


def setting(
    default: Any, reason: str, *, at_least: int | None = None, at_most: int | None = None, pattern: str | None = None
) -> Any:
    """A configuration field: its default, why it is that, and its bounds; `pattern` is what a whole text matches."""
    metadata = {"reason": reason, "at_least": at_least, "at_most": at_most, "pattern": pattern}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Settings of one queue node, table [broker] of penstock.toml."""

    data: str = setting(".penstock", "everything Penstock writes is below this folder")
    listen: str = setting("127.0.0.1:9092", "HOST:PORT for Kafka clients; loopback, since there is no authentication")
    advertise: str = setting("", "HOST:PORT told to clients when it is not the address listened on")
    metrics: str = setting("", "HOST:PORT for GET /metrics, /health and /ready; empty: no such listener")
    insecure: bool = setting(False, "allow listening beyond loopback although anybody could then read and write")
    auto_create_topics: bool = setting(True, "a client that asks for a topic gets it, as with Kafka's default")
    default_partitions: int = setting(1, "partitions of a topic created without a count", at_least=1, at_most=10_000)

    topics_max: int = setting(10_000, "bounds the catalog in memory", at_least=1)
    partitions_max: int = setting(20_000, "bounds open logs and their indexes in memory", at_least=1)
    connections_max: int = setting(10_000, "bounds file handles and per-connection memory", at_least=1)
    http_connections_max: int = setting(
        64, "of those who ask for metrics or health: each asks once and is closed, so few are enough", at_least=1
    )
    frame_bytes_max: int = setting(100 * MIB, "Kafka's own limit for one request", at_least=KIB, at_most=GIB)
    frame_bytes_max_first: int = setting(
        64 * KIB, "a stranger gets little memory before its first request made sense", at_least=KIB
    )
    request_bytes_max: int = setting(
        4 * MIB, "largest request but Produce: decoded, it takes many times its size", at_least=KIB
    )
    inflight_bytes_max_connection: int = setting(
        8 * MIB,
        "unanswered requests and unsent replies of one client before it is no longer read",
        at_least=KIB,
    )
    inflight_bytes_max: int = setting(
        512 * MIB, "the same in all: past it fetches are answered empty, and who holds much is not read", at_least=MIB
    )
    fetch_bytes_max: int = setting(55 * MIB, "Kafka's limit for one fetch reply", at_least=KIB)
    fetch_bytes_step: int = setting(
        MIB, "read for one fetch at a time: everybody else waits so long; who wants more asks again", at_least=KIB
    )
    loads_max: int = setting(
        16, "fetches of old records for which the disk reads at once; the next wait in the order they came", at_least=1
    )
    opened_bytes_max: int = setting(
        128 * MIB,
        "a compressed batch that opens to more is refused; the broker opens each batch to check its records",
        at_least=MIB,
        at_most=GIB,
    )
    opened_on_loop_bytes_max: int = setting(
        8 * MIB,
        "compressed batches opened by the event loop in one step, 10 to 30 ms; threads open the rest",
        at_least=KIB,
        at_most=GIB,
    )
    openings_max: int = setting(
        2,
        "threads that open batches: each takes up to twice opened_bytes_max of memory",
        at_least=1,
        at_most=64,
    )
    metadata_queue_max: int = setting(1_000, "topic changes waiting for the one being written", at_least=1)
    request_deadline_ms: int = setting(30 * SECOND_MS, "a frame begun must be whole by then (slow loris)", at_least=100)
    reply_deadline_ms: int = setting(
        60 * SECOND_MS, "a client that takes nothing of its replies for this long is closed (slow reader)", at_least=100
    )
    stop_deadline_ms: int = setting(
        30 * SECOND_MS, "a clean stop waits this long for syncs and for clients to take their replies", at_least=100
    )
    idle_ms_max: int = setting(600 * SECOND_MS, "a connection silent this long is closed, as Kafka does", at_least=1000)
    compiled: bool = setting(
        True, "the modules that 'penstock compile' has made are used; off: their sources, to debug or to compare"
    )
    sync_in_kernel: bool = setting(
        True, "Linux syncs dirty files by itself, 64 at once; off: threads do, where a tracer must see every call"
    )
    sync_shares_flush: bool = setting(
        True, "files synced at once share one flush of the disk's cache, on ext4 (ADR 13); off: a flush for each"
    )
    sync_threads: int = setting(
        8,
        "syncs run at once by threads: new files, and all where the kernel does not sync by itself",
        at_least=1,
        at_most=64,
    )
    sync_inline_us_max: int = setting(
        2_000,
        "while syncs take less than this the loop waits for them: cheaper than to be told of their end; 0: never",
        at_least=0,
    )
    checkpoint_ms: int = setting(
        SECOND_MS, "how often the durable point of busy partitions is itself made durable", at_least=10
    )
    checkpoint_bytes: int = setting(64 * MIB, "log written between two saved indexes and snapshots", at_least=MIB)
    retention_check_ms: int = setting(30 * SECOND_MS, "how often old segments are looked for", at_least=100)
    producer_expiry_ms: int = setting(DAY_MS, "an idempotent producer silent this long is forgotten", at_least=1000)
    producers_max: int = setting(
        100_000,
        "idempotent producers remembered by one partition; past it the longest silent go",
        at_least=100,
    )
    groups_max: int = setting(10_000, "bounds what is kept of groups in memory", at_least=1)
    group_members_max: int = setting(
        2_000, "members of one group: the leader of a generation is told of each of them", at_least=1
    )
    group_bytes_max: int = setting(
        64 * MIB, "what all members say to each other, and again all positions with their metadata", at_least=KIB
    )
    group_session_ms_min: int = setting(6 * SECOND_MS, "Kafka's limit for a member's session timeout", at_least=1)
    group_session_ms_max: int = setting(1_800 * SECOND_MS, "Kafka's limit for a member's session timeout", at_least=1)
    group_initial_delay_ms: int = setting(
        100, "how long a group that forms waits for the next member, so that a crowd is one rebalance", at_least=0
    )
    consumer_session_ms: int = setting(
        45 * SECOND_MS, "a member of the newer protocol silent this long is dropped, as Kafka does", at_least=100
    )
    consumer_heartbeat_ms: int = setting(
        5 * SECOND_MS, "how often members of the newer protocol are told to come, as Kafka does", at_least=10
    )
    offset_metadata_bytes_max: int = setting(4 * KIB, "Kafka's limit for what is kept with a position", at_least=0)
    offsets_retention_ms: int = setting(
        7 * DAY_MS, "positions of a group that has been empty this long are forgotten, as Kafka does", at_least=1000
    )
    offsets_check_ms: int = setting(600 * SECOND_MS, "how often positions to forget are looked for", at_least=100)
    transaction_timeout_ms_max: int = setting(
        900 * SECOND_MS, "Kafka's limit for how long a transaction may stay open and hold readers back", at_least=1
    )
    transactional_ids_max: int = setting(100_000, "bounds what is kept of transactions in memory", at_least=1)
    transactional_id_chars_max: int = setting(
        1_000, "bounds, with their number, what is kept of transactional ids", at_least=1, at_most=32_767
    )
    transaction_groups_max: int = setting(
        100, "groups in one transaction: all of them are written with each change of it", at_least=1
    )
    transactional_id_expiry_ms: int = setting(
        7 * DAY_MS, "a transactional id that nobody has used for this long is forgotten, as Kafka does", at_least=1000
    )
    transactional_ids_check_ms: int = setting(
        600 * SECOND_MS, "how often transactional ids to forget are looked for", at_least=100
    )
    memory_reserve: int = setting(
        1_000_000,
        "offsets reserved durably at a time by a memory topic, so that none is given twice",
        at_least=1000,
        at_most=1_000_000_000,  # skipped by one batch, whose count has 31 bits
    )


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """Settings of the doors in and out, table [edge] of penstock.toml."""

    listen: str = setting("127.0.0.1:8080", "HOST:PORT for HTTP and WebSocket; loopback unless there is a token")
    token: str = setting("", "who does not send it as 'Authorization: Bearer' or ?token= is refused; empty: no token")
    insecure: bool = setting(False, "allow listening beyond loopback although there is no token")
    hosts: str = setting("", "Host headers answered besides localhost and the address listened on, with commas")
    origins: str = setting("", "web origins whose pages may talk to us besides our own, with commas")
    event_bytes_max: int = setting(900 * KIB, "largest event: below the queue's own limit for a batch", at_least=KIB)
    body_bytes_max: int = setting(16 * MIB, "largest body that is taken as a whole (all or nothing)", at_least=KIB)
    body_events_max: int = setting(10_000, "events in a body that is taken as a whole", at_least=1)
    inflight_bytes_max: int = setting(
        64 * MIB, "events not yet stored, in all, before 503 with Retry-After", at_least=MIB
    )
    connections_max: int = setting(10_000, "bounds file handles and per-connection memory", at_least=1)
    request_deadline_ms: int = setting(
        30 * SECOND_MS,
        "a request must be whole by then (slow loris); NDJSON must bring a line and 1 KiB/s in each such time",
        at_least=100,
    )
    store_deadline_ms: int = setting(30 * SECOND_MS, "how long the queue may be away before 503", at_least=100)
    wait_ms_max: int = setting(30 * SECOND_MS, "longest ?wait= for a result", at_least=1)
    waits_max: int = setting(10_000, "requests that wait for a result at once", at_least=1)
    results_max: int = setting(100_000, "latest results remembered for who asks again, for each query", at_least=1)
    lookups_max: int = setting(16, "GET /results that search a topic at once: each has a reader of its own", at_least=1)
    stalled_after_ms: int = setting(
        120 * SECOND_MS,
        "a query that has input and moves no further for this long, and for one more commit, makes /ready red; a full "
        "micro-batch may take a minute",
        at_least=1000,
    )
    live_clients_max: int = setting(5_000, "SSE and WebSocket clients at once", at_least=1)
    live_catch_ups_max: int = setting(16, "clients that read history at once: each has a reader of its own", at_least=1)
    live_catch_up_wait_ms: int = setting(10 * SECOND_MS, "longest wait for one of those readers before 503", at_least=0)
    live_backlog_bytes_max: int = setting(
        8 * MIB, "messages that wait for one client, besides the count its delivery declares", at_least=KIB
    )
    live_recent_max: int = setting(
        1_000, "latest messages of each delivered topic kept for clients that come back after a moment", at_least=0
    )
    live_recent_bytes_max: int = setting(4 * MIB, "the same in bytes of keys and values", at_least=0)
    live_beat_ms: int = setting(
        15 * SECOND_MS, "a silent stream says so this often: proxies close idle ones", at_least=10
    )
    live_stall_ms: int = setting(
        30 * SECOND_MS, "who reads history must take 64 KiB in this time, or makes room for others", at_least=10
    )
    live_goodbye_ms: int = setting(
        5 * SECOND_MS, "a client too slow has this long to hear why it is closed", at_least=1
    )


@dataclass(frozen=True, slots=True)
class AnalyzeConfig:
    """Settings of the queries, table [analyze] of penstock.toml; Spark's own stand in [analyze.spark]."""

    master: str = setting(
        "local",
        "'local': this machine, with the task slots that the queries need; 'local[N]': with N. A Spark cluster needs "
        "spark.jars in [analyze.spark]: its executors do not get Penstock's jars yet",
        pattern=r"local(\[\d+\])?|spark://.+",
    )
    memory: str = setting("1g", "heap of the Spark driver, where local queries run")
    shuffle_partitions: int = setting(2, "partitions behind a groupBy: each needs a task slot all the time", at_least=1)
    batch_events_max: int = setting(
        1_000_000, "events of one micro-batch: three days offline must not be one batch", at_least=1
    )
    restarts_max: int = setting(5, "failures of one query within restart_window_ms before it is parked", at_least=1)
    restart_window_ms: int = setting(600 * SECOND_MS, "failures longer ago are forgotten", at_least=1000)
    dead_letters_every_ms: int = setting(
        60 * SECOND_MS, "how often dead letters are looked for: each look delays real-time results for a moment",
        at_least=100,
    )  # fmt: skip
    ui: bool = setting(True, "Spark's own pages, on a free port of loopback")
    ml: bool = setting(False, "for queries that use pyspark.ml: what Spark does for it makes every start 2 s longer")
    spark: Mapping[str, str] = setting({}, "any setting of Spark, by its own name")


def clipped(text: str) -> str:
    """What a stranger sent, short enough to be said back: an answer has little room."""
    return text if len(text) <= 100 else f"{text[:100]}…"


def hint(name: str, known: Mapping[str, object]) -> str:
    """ ", did you mean X?" when something known is close to `name`, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""


def parameter_fault(given: Iterable[str], known: Sequence[str]) -> str | None:
    """What is wrong with the names of a request's parameters, or None; every door knows `token`."""
    unknown = [name for name in given if name not in (*known, "token")]
    if not unknown:
        return None
    one = len(unknown) == 1
    said = ", ".join(repr(name[:50]) for name in unknown[:5])
    return (
        f"unknown parameter{'' if one else 's'} {said}: known {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
    )


def build_config(
    layers: list[tuple[str, Mapping[str, object]]], table: type[Settings]
) -> tuple[Settings, dict[str, str]]:
    """One table of the configuration from layers (origin, values), later ones winning, and where each came from."""
    fields = {f.name: f for f in dataclasses.fields(table)}  # type: ignore[arg-type]  # every table is a dataclass
    types = get_type_hints(table)
    values: dict[str, object] = {}
    origins = dict.fromkeys(fields, "default")
    faults = []
    for origin, layer in layers:
        for name, raw in layer.items():
            if name not in fields:
                faults.append(f"{origin}: unknown setting {name}{hint(name, fields)}")
                continue
            try:
                values[name] = _typed(types[name], raw, fields[name].metadata)
            except ValueError as wrong:
                faults.append(f"{origin}: {name} {wrong}")
            origins[name] = origin
    if faults:
        raise ConfigError(*faults)
    return table(**values), origins


def _typed(kind: type, raw: object, bounds: Mapping[str, Any]) -> object:
    if get_origin(kind) is not None:
        if not isinstance(raw, Mapping):
            raise ValueError(f"must be a table, not {raw!r}")
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in _flat(raw)}
    if kind is bool:
        if isinstance(raw, bool):
            return raw
        if str(raw).lower() in ("1", "true", "yes", "on"):
            return True
        if str(raw).lower() in ("0", "false", "no", "off"):
            return False
        raise ValueError(f"must be true or false, not {raw!r}")
    if kind is int:
        try:
            number = int(str(raw).replace("_", ""))
        except ValueError:
            raise ValueError(f"must be a whole number, not {raw!r}") from None
        low, high = bounds["at_least"], bounds["at_most"]
        if low is not None and number < low:
            raise ValueError(f"must be at least {low}, not {number}")
        if high is not None and number > high:
            raise ValueError(f"must be at most {high}, not {number}")
        return number
    if not isinstance(raw, str):
        raise ValueError(f"must be text, not {raw!r}")
    if bounds["pattern"] is not None and not re.fullmatch(bounds["pattern"], raw):
        raise ValueError(f"cannot be {clipped(raw)!r}: {bounds['reason']}")
    return raw


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """(spark.ui.port, 4040) from {"spark": {"ui": {"port": 4040}}}: dots are tables to TOML."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
