"""Every fault of an app, named at once, before anything runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from penstock.app import App, Query, Table, Topic
from penstock.config.setting import hint
from penstock.events.headers import DEAD_SUFFIX, LATE_SUFFIX
from penstock.events.record_format import RecordFormat, format_faults
from penstock.events.schema import TIMES, SchemaError, parse_schema
from penstock.guarantee import Guarantee, Queue, duration_ms, refusals
from penstock.plan.declared_types import with_sound_types
from penstock.plan.guarantees import promises
from penstock.plan.inputs import queries_of, tables_of, with_inputs
from penstock.plan.policies import Emit, Late, Mode, Modes, StateStore, analyze_policy, delivery_policy
from penstock.plan.tables import table_faults

MODES = tuple(Mode)
STATES = tuple(StateStore)
EMITS = tuple(Emit)
LATES = tuple(Late)
FORMATS = tuple(RecordFormat)
SLOW_CLIENTS = ("disconnect", "drop_oldest", "conflate")
RESERVED_OUTPUTS = ("dead", "late", "json", "table", "new")  # QUERY.OUTPUT would be taken for something else
PARTITIONS_MAX = 1_000
BACKLOG_MAX = 100_000
COMMIT_MS_MIN = 5_000  # Spark refuses a shorter trigger in real time

_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_QUERY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


def app_faults(declared: App, queue: Queue) -> Iterator[str]:
    """Why this app cannot run on this queue."""
    app, wrong_types = with_sound_types(declared)
    yield from wrong_types
    yield from _name_faults(app)
    for topic in app.topics:
        yield from (f"topic {topic.name}: {fault}" for fault in _topic_faults(topic, queue))
    for table in app.tables:
        yield from (f"table {table.name}: {fault}" for fault in _table_faults(table, app))
    for query in app.queries:
        yield from (f"query {query.name}: {fault}" for fault in _query_faults(query, app))
    yield from _flow_faults(app)
    yield from _door_faults(app)
    yield from _once_faults(app)


def checkable(declared: App, queue: Queue) -> App:
    """The queries that have no faults of their own, on topics without faults: Spark can be asked about them."""
    app, _ = with_sound_types(declared)
    sound = App(app.name)
    sound.topics = [
        replace(topic, guarantee=None)
        for topic in {topic.name: topic for topic in app.topics}.values()
        if not list(_topic_faults(replace(topic, guarantee=None), queue))
    ]
    sound.tables = [
        table for table in {table.name: table for table in app.tables}.values() if not list(_table_faults(table, app))
    ]
    sound.queries = [
        query
        for query in {query.writes: query for query in app.queries}.values()
        if not list(_query_faults(query, app))
    ]
    known = {topic.name for topic in sound.topics} | {table.name for table in sound.tables}
    sound.queries = [query for query in sound.queries if set(with_inputs(query, app).inputs) <= known]
    return sound


def _name_faults(app: App) -> Iterator[str]:
    if not _QUERY_NAME.fullmatch(app.name):
        yield f"an app is named by letters, digits, _ and -, not {app.name!r}"
    for kind, names in (
        ("topic", [topic.name for topic in app.topics]),
        ("table", [table.name for table in app.tables]),
        ("query", [query.name for query in app.queries]),
    ):
        for name in dict.fromkeys(name for name in names if names.count(name) > 1):
            yield f"{kind} {name} is declared {names.count(name)} times: names are identity, give each its own"


def _topic_name_faults(name: str) -> Iterator[str]:
    if not _TOPIC_NAME.fullmatch(name) or name in (".", ".."):
        yield "a topic's name has 1 to 249 of letters, digits, '.', '_' and '-'"
    if name.endswith((DEAD_SUFFIX, LATE_SUFFIX)) or name.startswith("penstock."):
        yield f"names that end in {DEAD_SUFFIX} or {LATE_SUFFIX}, or begin with penstock., are Penstock's own"


def _topic_faults(topic: Topic, queue: Queue) -> Iterator[str]:
    yield from _topic_name_faults(topic.name)
    if topic.partitions is not None and not 1 <= topic.partitions <= PARTITIONS_MAX:
        yield f"partitions is between 1 and {PARTITIONS_MAX}, not {topic.partitions}"
    guarantee = topic.guarantee or Guarantee()
    yield from guarantee.faults()
    yield from refusals(guarantee, queue)
    named = [*topic.key, *topic.identity, *([topic.event_time] if topic.event_time else [])]
    if topic.format not in FORMATS:
        yield f"format is one of {', '.join(FORMATS)}, not {topic.format!r}"
    if topic.schema is None:
        if topic.identity or topic.event_time:
            yield "identity and event_time name columns: give a schema"
        return
    try:
        schema = parse_schema(topic.schema)
    except SchemaError as error:
        yield f"the schema does not parse: {error}"
        return
    if topic.format in FORMATS:
        yield from format_faults(RecordFormat(topic.format), schema)
    if topic.example is not None and (fault := schema.fault(msgspec.json.encode(topic.example))):
        yield f"the example is no event of the schema: {fault}"
    columns = {column.name: column for column in schema.columns}
    for name in dict.fromkeys(named):
        if name not in columns:
            yield f"there is no column {name} in the schema{hint(name, columns)}"
    if topic.event_time in columns and columns[topic.event_time].type.name not in TIMES:
        yield f"event_time {topic.event_time} must be a TIMESTAMP, not {columns[topic.event_time].type.name.upper()}"


def _table_faults(table: Table, app: App) -> Iterator[str]:
    if not _QUERY_NAME.fullmatch(table.name):
        yield "a table is named by letters, digits, _ and -"
    if table.name in {*(topic.name for topic in app.topics), *(query.writes for query in app.queries)}:
        yield "there is a topic of that name: give the table another one"
    yield from table_faults(table)


def _query_faults(query: Query, app: App) -> Iterator[str]:
    names = [query.name] if query.output is None else query.name.split(".", 1)
    if not all(map(_QUERY_NAME.fullmatch, names)):
        yield "a query, and each of its outputs, is named by letters, digits, _ and -"
    if query.writes not in [topic.name for topic in app.topics]:
        yield from (f"writes {query.writes}: {fault}" for fault in _topic_name_faults(query.writes))
    if query.output in RESERVED_OUTPUTS:
        yield f"an output cannot be called {query.output}: files or topics of Penstock's own have such names"
    options = query.options
    if options.mode not in MODES:
        yield f"mode is one of {', '.join(MODES)}, not {options.mode!r}"
    if options.state not in STATES:
        yield f"state is one of {', '.join(STATES)}, not {options.state!r}"
    if options.emit is not None and options.emit not in EMITS:
        yield f"emit is one of {', '.join(EMITS)}, not {options.emit!r}"
    elif options.mode == Mode.REALTIME and options.emit not in (None, Emit.CHANGES):
        yield (
            f"mode='realtime' writes changes only, and emit={str(options.emit)!r} needs whole batches: say "
            "mode='microbatch', or emit='changes'"
        )
    if options.late not in LATES:
        yield f"late is one of {', '.join(LATES)}, not {options.late!r}"
    elif options.late == Late.KEEP:
        if options.mode == Mode.REALTIME:
            yield "mode='realtime' cannot keep late events: say mode='microbatch', or leave late='keep' out"
        if options.watermark is None:
            yield "late='keep' needs watermark=: without one no event is late"
    for what, text in (("every", options.every), ("watermark", options.watermark)):
        if text is not None and not duration_ms(text):
            yield f"{what} is a duration such as '10 minutes', not {text!r}"
    every_ms = duration_ms(options.every) if options.every else None
    if options.mode == Mode.REALTIME and every_ms and every_ms < COMMIT_MS_MIN:
        yield f"every is how often a real-time query commits: at least {COMMIT_MS_MIN // 1000} seconds"
    known: dict[str, Any] = {q.writes: q for q in app.queries} | {topic.name: topic for topic in app.topics}
    tables = {table.name: table for table in app.tables}
    told_apart = with_inputs(query, app)
    reads = told_apart.reads
    if not reads:
        what = "reads no topic" if query.sql is None else "the SQL text names no STREAM(topic)"
        why = ": a table is joined to the events of a topic" if tables_of(told_apart) else ""
        yield f"{what}{why}"
    for name in tables_of(told_apart):
        if name in known:
            yield f"{name} is a topic: write STREAM({name}), not TABLE({name})"
        elif name not in tables:
            yield f"reads the unknown table {name}{hint(name, tables)}"
    for name in reads:
        if name in tables:
            yield f"{name} is a table: write TABLE({name}), not STREAM({name})"
        elif name not in known:
            yield f"reads the unknown topic {name}{hint(name, known | tables)}"
        elif getattr(known[name], "schema", None) is None:
            yield f"reads {name}, which has no schema: declare it with app.topic({name!r}, schema=…)"
    if query.function is not None:
        yield from _signature_faults(query.function, len(told_apart.inputs))


def _once_faults(app: App) -> Iterator[str]:
    """What cannot be had exactly once."""
    sound = {name: guarantee for name, guarantee in promises(app).items() if not guarantee.faults()}
    whole = {name for name, kept in sound.items() if analyze_policy(kept).modes.value is Modes.MICROBATCH}
    unskipped = {name for name, kept in sound.items() if not delivery_policy(kept).may_skip.value}
    for query in app.queries:
        if query.writes in whole and query.options.mode == Mode.REALTIME:
            yield (
                f"query {query.name}: mode='realtime' writes each result as it comes, and {query.writes} promises "
                "exactly-once, which commits whole batches: say mode='microbatch', or give "
                f"{query.writes} a guarantee with delivery='at-least-once'"
            )
    for delivery in app.deliveries:
        if delivery.topic in unskipped and delivery.slow_client in SLOW_CLIENTS[1:]:
            yield (
                f"delivery {delivery.at}: slow_client={delivery.slow_client!r} leaves messages out, and "
                f"{delivery.topic} promises exactly-once: say slow_client='disconnect', by which a client comes back "
                "and gets what it missed"
            )


def _signature_faults(function: Callable[..., Any], reads: int) -> Iterator[str]:
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        yield "must be an ordinary function that returns a DataFrame"
        return
    try:
        inspect.signature(function).bind(*[None] * reads)
    except TypeError:
        yield f"must take {reads} DataFrame{'s' if reads != 1 else ''}, one for each topic and table it reads"


def _flow_faults(app: App) -> Iterator[str]:
    queries = queries_of(app)
    writers: dict[str, list[str]] = {}
    for query in queries:
        writers.setdefault(query.writes, []).append(f"query {query.name}")
    for ingest in app.ingests:
        writers.setdefault(ingest.into, []).append("an ingest")
    for topic, names in writers.items():
        writing = [name for name in names if name.startswith("query")]
        if len(writing) > 1 or (writing and len(names) > 1):
            yield f"topic {topic} has {len(names)} writers ({', '.join(names)}): give each a topic of its own"
    after = {query.writes: query.reads for query in queries}
    for topic in after:
        if (ring := _ring(topic, after)) and min(ring) == topic:
            yield f"a cycle: {' -> '.join([*ring, ring[0]])}"


def _ring(topic: str, after: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The way from a topic back to itself, in the direction of the data; empty if there is none."""
    ways, seen = [[topic]], {topic}
    while ways:
        way = ways.pop()
        for before in after.get(way[0], ()):
            if before == topic:
                return way if way[0] == topic else [topic, *way[:-1]]
            if before not in seen:
                seen.add(before)
                ways.append([before, *way])
    return []


def _door_faults(app: App) -> Iterator[str]:
    known = {topic.name: topic for topic in app.topics}
    outputs: dict[str, Any] = known | {query.writes: query for query in app.queries}
    paths = [ingest.source.path.strip("/") or ingest.into for ingest in app.ingests]
    for ingest, path in zip(app.ingests, paths, strict=True):
        if ingest.into not in known:
            yield f"ingest into the unknown topic {ingest.into}{hint(ingest.into, known)}"
        elif known[ingest.into].format != RecordFormat.JSON:
            yield (
                f"ingest into {ingest.into}: POST takes JSON, and the topic has format={known[ingest.into].format!r}: "
                "write it with a Kafka client, or leave its format out"
            )
        if paths.count(path) > 1:
            yield f"/ingest/{path} is declared {paths.count(path)} times"
    ats = [delivery.at for delivery in app.deliveries]
    for delivery in app.deliveries:
        what = f"delivery {delivery.at}"
        if delivery.topic not in outputs:
            yield f"{what}: unknown topic {delivery.topic}{hint(delivery.topic, outputs)}"
        if not re.fullmatch(r"/live/[A-Za-z0-9._-]+", delivery.at):
            yield f"{what}: a path looks like /live/NAME"
        if ats.count(delivery.at) > 1:
            yield f"{what} is declared {ats.count(delivery.at)} times"
        if delivery.slow_client not in SLOW_CLIENTS:
            yield f"{what}: slow_client is one of {', '.join(SLOW_CLIENTS)}, not {delivery.slow_client!r}"
        if not 1 <= delivery.backlog_max <= BACKLOG_MAX:
            yield f"{what}: backlog_max is between 1 and {BACKLOG_MAX}, not {delivery.backlog_max}"
