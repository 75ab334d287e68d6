"""How every query is, as it tells the topic penstock.queries, for the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.client.record import Record
from penstock.client.tail import Tail
from penstock.event import QUERIES_TOPIC
from penstock.plan import Plan

SILENT_AFTER_MS = 10_000  # each query reports every second


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


_said = msgspec.json.Decoder(Said)


class QueryStates:
    """Follows what queries say; make it where a loop runs."""

    def __init__(self, plan: Plan, tail: Tail) -> None:
        self._plan = plan
        self._last: dict[str, Said] = {}
        self._following = asyncio.create_task(tail.follow(QUERIES_TOPIC, self._take))

    def table(self) -> list[dict[str, Any]]:
        """A row for each query of the app, in its order."""
        return query_rows(self._plan, self._last, time.time_ns() // 1_000_000)

    def starting(self) -> list[str]:
        """The queries of the app that have not said yet that they run, wait or are parked."""
        states = {name: said.state for name, said in self._last.items()}
        return [name for name in self._plan.queries if states.get(name, "starting") == "starting"]

    async def close(self) -> None:
        self._following.cancel()

    def _take(self, records: list[Record]) -> None:
        for record in records:
            try:
                said = _said.decode(record.value or b"")
            except msgspec.DecodeError:
                continue  # anybody may write there
            if said.app == self._plan.app:  # several apps may share a queue
                self._last[said.query] = said


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
