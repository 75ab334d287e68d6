"""One query of an app under test: on lists of rows, as a batch and as a stream, on the path that a run takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from penstock.app import App
from penstock.config.setting import hint
from penstock.errors import ConfigError
from penstock.events.record_format import RecordFormat
from penstock.guarantee import Queue
from penstock.plan.planner import plan_app
from penstock.testing.events import Given, TopicRecords, table_row
from penstock.testing.shared_spark import local_config, shared_spark

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from penstock.analyze.query_trial import QueryTrial
    from penstock.analyze.standalone_session import SparkSession
    from penstock.analyze.trial_records import DeadRecord, InputRecord, OutputRecord

Pieces = Sequence[Sequence[Given]]

_ANY_QUEUE = Queue(kind="kafka", brokers=3)  # it can keep every guarantee that an app may ask for


@dataclass(frozen=True)
class Result:
    """A record that the query writes: its key, its value, and the headers that Penstock adds.

    `row` is None for a tombstone: the row of this key left the result. Where the topic's format is not JSON, `row` has
    the text of the value as `value`.
    """

    key: str | None
    row: dict[str, Any] | None
    headers: dict[str, str]


@dataclass(frozen=True)
class StreamRun:
    """What a query has written of the pieces that it was given.

    `late` counts the rows that the watermark dropped, as the metrics of a run do: Spark counts the late rows of one
    group in one piece once.
    """

    written: list[list[Result]]  # after each piece, in order
    late: int
    _no_table: str | None = field(repr=False)
    _find_dead: Callable[[], list[DeadRecord]] = field(repr=False)

    @property
    def pieces(self) -> list[list[dict[str, Any]]]:
        """The rows that the query wrote after each piece, in order."""
        return [[result.row for result in results if result.row is not None] for results in self.written]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Every row that the query wrote, in order."""
        return [row for piece in self.pieces for row in piece]

    @property
    def table(self) -> list[dict[str, Any]]:
        """The latest row of each key, in the order of the keys: what a consumer has that keeps the results by key."""
        if self._no_table is not None:
            raise ConfigError(self._no_table)
        latest = {result.key: result.row for results in self.written for result in results}
        return [row for key in sorted(latest, key=str) if (row := latest[key]) is not None]

    @cached_property
    def dead(self) -> list[DeadRecord]:
        """The events that reach no query, each with its topic, value and reason."""
        return self._find_dead()


class QueryTest:
    """A query of an app, to run on lists of rows. Nothing starts before the first run."""

    def __init__(self, app: App, query: str, *, spark: SparkSession | None = None) -> None:
        """`spark` is a session of your own; without it, all query tests share one.

        ConfigError with every error of the app, or if it has no such query.
        """
        self._plan = plan_app(app, _ANY_QUEUE)
        if query not in self._plan.queries:
            known = ", ".join(self._plan.queries) or "none"
            raise ConfigError(f"app {app.name} has no query {query}{hint(query, self._plan.queries)}: it has {known}")
        self._query = self._plan.queries[query]
        self._own_spark = spark
        self._used: tuple[SparkSession, QueryTrial] | None = None

    def batch(self, **events: Sequence[Given]) -> list[dict[str, Any]]:
        """The rows that the query writes if it reads all events of each topic at once. A table has its rows likewise.

        Rows of an aggregate come in the order of their keys, other rows in that of Spark.
        """
        records = []
        tables = self._take_tables(events)
        for name, given in events.items():
            topic = TopicRecords(self._plan.topics[self._reads(name)])
            records += [topic.record(event, f"{name}, row {row}") for row, event in enumerate(_events(name, given), 1)]
        trial = self._trial
        found = list(map(self._result, trial.batch(records, tables)))
        if trial.no_table is None:
            found.sort(key=lambda result: str(result.key))
        return [result.row for result in found if result.row is not None]

    def stream(self, **pieces: Pieces) -> StreamRun:
        """Run the query on pieces of each topic. The first pieces of all topics arrive together, then the second ones.

        Each piece is one micro-batch, and the watermark moves between two pieces. A table is given as in `batch`: as
        one list of rows.
        """
        tables = self._take_tables(pieces)
        joined: list[list[InputRecord]] = [[] for _ in range(max(map(len, pieces.values()), default=0))]
        for name, of_topic in pieces.items():
            topic = TopicRecords(self._plan.topics[self._reads(name)])
            for at, piece in enumerate(of_topic, 1):
                given = enumerate(_events(f"{name}, piece {at}", piece), 1)
                joined[at - 1] += [topic.record(event, f"{name}, piece {at}, row {row}") for row, event in given]
        trial = self._trial
        streamed = trial.stream(joined, tables)
        records = [record for piece in joined for record in piece]
        return StreamRun(
            [list(map(self._result, written)) for written in streamed.pieces],
            streamed.late,
            trial.no_table,
            lambda: trial.dead(records),
        )

    def arrivals(
        self, *, watermark: str | None = None, pieces_max: int = 4, repeats: bool = False, **events: Sequence[Given]
    ) -> SearchStrategy[dict[str, list[list[Given]]]]:
        """Every way in which these events may arrive without one being late, for `stream`: a strategy of hypothesis.

        It draws an order that the watermark of the query allows, and where each piece ends. `watermark` says what the
        query allows if its own code sets that. With `repeats`, some events arrive several times.
        """
        try:
            from penstock.testing.arrivals import arrivals_of
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"arrivals needs {missing.name}, which is not installed: pip install hypothesis"
            ) from None

        topics = {name: self._plan.topics[name] for name in map(self._reads, events)}
        return arrivals_of(watermark or self._query.options.watermark, topics, events, pieces_max, repeats)

    def _take_tables(self, given: dict[str, Any]) -> dict[str, list[bytes]]:
        """Take the rows of tables out of what was given."""
        return {
            name: [
                table_row(row, self._plan.tables[name], f"{name}, row {number}")
                for number, row in enumerate(_events(name, given.pop(name)), 1)
            ]
            for name in self._query.tables
            if name in given
        }

    @property
    def _trial(self) -> QueryTrial:
        """The query on the Spark at hand; ConfigError if Spark refuses it."""
        from penstock.analyze.query_trial import QueryTrial

        spark = self._own_spark or shared_spark()
        if self._used is None or self._used[0] is not spark:
            self._used = spark, QueryTrial(self._query, self._plan, local_config(), spark)
        return self._used[1]

    def _result(self, record: OutputRecord) -> Result:
        row = None
        if record.value is not None and self._plan.topics[self._query.writes].format is RecordFormat.JSON:
            row = json.loads(record.value)
        elif record.value is not None:
            row = {"value": record.value.decode(errors="replace")}
        return Result(record.key, row, dict(record.headers))

    def _reads(self, name: str) -> str:
        if name not in self._query.reads:
            raise ConfigError(
                f"query {self._query.name} does not read {name}: it reads {', '.join(self._query.inputs)}"
            )
        return name


def _events(place: str, given: Sequence[Given]) -> Sequence[Given]:
    if isinstance(given, Mapping | bytes | str) or not isinstance(given, Sequence):
        raise ConfigError(
            f"{place} is a {type(given).__name__}, not a list of events: batch takes topic=[event, …], and stream "
            "topic=[[event, …], [event, …]]"
        )
    return given
