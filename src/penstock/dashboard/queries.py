"""How every query is, as it tells the topic penstock.queries: for the page, /ready and /metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.client.record import Record
from penstock.client.tail import Tail
from penstock.event import QUERIES_TOPIC
from penstock.plan import Plan

SILENT_AFTER_MS = 10_000  # each query reports every second


class Processing(msgspec.Struct):
    """How long a query took in the last minute with work, in milliseconds, and what took that long."""

    min: float
    avg: float
    max: float
    of: Literal["result", "batch"]


class Said(msgspec.Struct):
    """What a query said last; what it does not know is null."""

    app: str
    query: str
    at_ms: int
    state: str
    mode: str = ""
    mode_reason: str | None = None
    reason: str | None = None
    lag: int | None = None
    rows_in_per_s: float | None = None
    restarts: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int | None = None
    stalled_ms: int = 0
    processing_ms: Processing | None = None
    slots: int | None = None  # of all of Spark


class Heard(NamedTuple):
    """What a query said last, and when that was heard, by a clock that never jumps."""

    said: Said
    at_s: float


_said = msgspec.json.Decoder(Said)


class QueryStates:
    """Follows what queries say; make it where a loop runs."""

    def __init__(self, plan: Plan, tail: Tail) -> None:
        self._plan = plan
        self._names = frozenset([*plan.queries, *plan.dead_topics])
        self._loop = asyncio.get_running_loop()
        self.last: dict[str, Heard] = {}  # with those of dead letters
        self._following = asyncio.create_task(tail.follow(QUERIES_TOPIC, self._take))

    def table(self) -> list[dict[str, Any]]:
        """A row for each query of the app, in its order."""
        last = {name: heard.said for name, heard in self.last.items()}
        return query_rows(self._plan, last, time.time_ns() // 1_000_000)

    async def close(self) -> None:
        self._following.cancel()

    def _take(self, records: list[Record]) -> None:
        for record in records:
            try:
                said = _said.decode(record.value or b"")
            except msgspec.DecodeError:
                continue  # anybody may write there
            if said.app == self._plan.app and said.query in self._names:  # several apps may share a queue
                self.last[said.query] = Heard(said, self._loop.time())


def query_rows(plan: Plan, last: Mapping[str, Said], now_ms: int) -> list[dict[str, Any]]:
    """What is known of each query at a moment; who has not spoken for long is silent."""
    rows = []
    for query in plan.queries.values():
        said = last.get(query.name)
        row: dict[str, Any] = {"query": query.name, "reads": list(query.reads), "writes": query.writes}
        if said is None:
            row |= {"state": "starting", "reason": "it has not reported yet"}
        elif now_ms - said.at_ms > SILENT_AFTER_MS:
            row |= msgspec.to_builtins(said) | {"state": "silent", "reason": "nothing heard of it: is analyze away?"}
        else:
            row |= msgspec.to_builtins(said)
        rows.append(row)
    return rows
