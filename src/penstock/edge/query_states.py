"""How every query is, as it tells the topic penstock.queries: for the page, /ready and /metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.client.record import Record
from penstock.client.tail import Tail
from penstock.events.headers import QUERIES_TOPIC
from penstock.events.query_status import SILENT, QueryState, QueryStatus, decode_status, is_silent
from penstock.plan.plan import Plan


class Heard(NamedTuple):
    """What a query said last, and when that was heard, by a clock that never jumps."""

    said: QueryStatus
    at_s: float


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
            said = decode_status(record.value)
            # Several apps may share a queue.
            if said is not None and said.app == self._plan.app and said.query in self._names:
                self.last[said.query] = Heard(said, self._loop.time())


def query_rows(plan: Plan, last: Mapping[str, QueryStatus], now_ms: int) -> list[dict[str, Any]]:
    """What is known of each query at a moment."""
    rows = []
    for query in plan.queries.values():
        said = last.get(query.name)
        row: dict[str, Any] = {} if said is None else msgspec.to_builtins(said)
        row |= {"query": query.name, "reads": list(query.reads), "writes": query.writes}
        if said is None:
            row |= {"state": QueryState.STARTING, "reason": "it has not reported yet"}
        elif is_silent(said, now_ms - said.at_ms):
            row |= {"state": SILENT, "reason": "nothing heard of it: is analyze away?"}
        rows.append(row)
    return rows
