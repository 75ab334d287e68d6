"""What a user declares. Inert: nothing here runs, checks or connects; see plan/planner.py for what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict, Unpack

from penstock.guarantee import Guarantee
from penstock.sources import Source

ModeWord = Literal["auto", "realtime", "microbatch"]  # those of policies.Mode
StateWord = Literal["disk", "memory"]  # those of policies.StateStore
FormatWord = Literal["json", "text", "bytes", "csv"]  # those of record_format.RecordFormat
LateWord = Literal["drop", "keep"]  # those of policies.Late
EmitWord = Literal["changes", "final", "all"]  # those of policies.Emit
TableWord = Literal["csv", "json", "parquet", "jdbc"]  # those of tables.TableFormat


@dataclass(frozen=True, slots=True)
class Topic:
    """A stream of events with a name, and what is known about them."""

    name: str
    schema: str | None = None
    key: tuple[str, ...] = ()
    event_time: str | None = None
    identity: tuple[str, ...] = ()
    partitions: int | None = None
    guarantee: Guarantee | None = None
    example: Mapping[str, Any] | None = None
    format: str = "json"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that queries join to their events: files, or a table of a database."""

    name: str
    path: str | None = None
    format: str = "csv"
    schema: str | None = None
    every: str | None = None
    options: Mapping[str, str | int | bool] = field(default_factory=dict, repr=False)  # it may hold a password


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a query runs, in the words of the app: `app_faults` checks them, and a QueryPlan has them as enums."""

    mode: str = "auto"
    every: str | None = None
    watermark: str | None = None
    emit: str | None = None
    late: str = "drop"
    state: str = "disk"
    spark: Mapping[str, str | int | bool] = field(default_factory=dict)


class QueryKeywords(TypedDict, total=False):
    """The options of a query as keywords, for editors and type checkers: those of QueryOptions."""

    mode: ModeWord
    every: str | None
    watermark: str | None
    emit: EmitWord | None
    late: LateWord
    state: StateWord
    spark: Mapping[str, str | int | bool]


@dataclass(frozen=True, slots=True)
class Query:
    """A continuous query: a function of DataFrames, or SQL, from topics to one topic.

    `reads` has topics and tables as declared. `plan.inputs.with_inputs` tells them apart: then `reads` has the topics
    alone, and `inputs` has both in the order of the function's arguments.
    """

    name: str
    reads: tuple[str, ...]
    writes: str
    function: Callable[..., Any] | None = None
    sql: str | None = None
    output: str | None = None  # which of the DataFrames that the function returns; None: it returns one
    options: QueryOptions = field(default_factory=lambda: QueryOptions())
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ingest:
    """A door in."""

    source: Source
    into: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """A door out."""

    topic: str
    at: str
    slow_client: str = "disconnect"
    backlog_max: int = 1_000


Function = Callable[..., Any]


class App:
    """Topics, doors and queries under one name. Names are identity: they key recovery."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.topics: list[Topic] = []
        self.tables: list[Table] = []
        self.queries: list[Query] = []
        self.ingests: list[Ingest] = []
        self.deliveries: list[Delivery] = []

    def topic(
        self,
        name: str,
        *,
        schema: str | None = None,
        key: str | Sequence[str] = (),
        event_time: str | None = None,
        identity: str | Sequence[str] = (),
        partitions: int | None = None,
        guarantee: Guarantee | None = None,
        example: Mapping[str, Any] | None = None,
        format: FormatWord = "json",
    ) -> Topic:
        """A topic of events; `schema` is Spark's DDL, `identity` the columns that make two events the same one.

        `example` is shown to whoever wants to send an event by hand. `format` is how a record holds an event: JSON,
        UTF-8 text or bytes in one column, or a line of CSV without a header.
        """
        topic = Topic(name, schema, _names(key), event_time, _names(identity), partitions, guarantee, example, format)
        self.topics.append(topic)
        return topic

    def table(
        self,
        name: str,
        *,
        path: str | None = None,
        format: TableWord = "csv",
        schema: str | None = None,
        every: str | None = None,
        options: Mapping[str, str | int | bool] | None = None,
    ) -> Table:
        """A table that queries join to their events. `path` is a file, a folder or a pattern, beside the app's file.

        It is read at each start, and again after each `every`, such as '10 minutes'. `schema` is Spark's DDL.
        `options` go to Spark's reader; those of JDBC have `url` and `dbtable`. A CSV file has a header line.
        """
        table = Table(name, path, format, schema, every, {} if options is None else options)
        self.tables.append(table)
        return table

    def ingest(self, source: Source, *, into: Topic | str) -> None:
        """Let events in by `source`."""
        self.ingests.append(Ingest(source, _name(into)))

    def query(
        self,
        *,
        reads: Topic | str | Sequence[Topic | Table | str],
        writes: Topic | str | Mapping[str, Topic | str],
        name: str | None = None,
        **options: Unpack[QueryKeywords],
    ) -> Callable[[Function], Function]:
        """Run the decorated function of streaming DataFrames continuously; it stays an ordinary function.

        A table among `reads` is a DataFrame that does not stream.

        With several topics to write, such as `writes={"hot": HOT, "cold": COLD}`, the function returns a dict of
        DataFrames with these names. Each is a query of its own, named QUERY.OUTPUT: it reads its topics by itself.
        """
        chosen = _options("query", options)
        topics = (reads,) if isinstance(reads, Topic | Table | str) or not isinstance(reads, Iterable) else tuple(reads)

        outputs = list(writes.items()) if isinstance(writes, Mapping) else [(None, writes)]

        def declare(function: Function) -> Function:
            whole = name or function.__name__
            self.queries += [
                Query(
                    name=whole if output is None else f"{whole}.{output}",
                    reads=tuple(map(_name, topics)),
                    writes=_name(topic),
                    function=function,
                    output=output,
                    options=chosen,
                )
                for output, topic in outputs or [(None, "")]
            ]
            return function

        return declare

    def sql(
        self,
        name: str,
        text: str,
        *,
        writes: Topic | str | None = None,
        **options: Unpack[QueryKeywords],
    ) -> None:
        """Run a SQL text continuously; it writes a topic of its own name.

        The text names what it reads as STREAM(topic), and after FROM or JOIN as TABLE(table).
        """
        self.queries.append(
            Query(
                name=name,
                reads=(),
                writes=_name(writes) if writes is not None else name,
                sql=text,
                options=_options("sql", options),
            )
        )

    def deliver(
        self,
        topic: Topic | str,
        *,
        at: str | None = None,
        slow_client: str = "disconnect",
        backlog_max: int = 1_000,
    ) -> None:
        """Push a topic to whoever listens, by SSE and WebSocket."""
        self.deliveries.append(Delivery(_name(topic), at or f"/live/{_name(topic)}", slow_client, backlog_max))


def _options(method: str, given: QueryKeywords) -> QueryOptions:
    known = [option.name for option in fields(QueryOptions)]
    for name in given:
        if name not in known:
            raise TypeError(f"App.{method}() has no option {name!r}; its options are {', '.join(known)}")
    return QueryOptions(**given)


def _name(input: Topic | Table | str) -> str:
    return input.name if isinstance(input, Topic | Table) else input


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    # What is no name, or names, stays as it is: the checks of the plan say what is wrong with it.
    return (columns,) if isinstance(columns, str) or not isinstance(columns, Iterable) else tuple(columns)
