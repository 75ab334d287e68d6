"""The results of queries for whoever waits for them: follows outputs and progress, answers GET /results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.client.lookup import find_record
from penstock.client.offsets import LATEST, Offsets
from penstock.client.record import Record
from penstock.client.tail import Tail
from penstock.config.edge import EdgeConfig
from penstock.edge.results.query_paths import Link, Way
from penstock.edge.results.waits import Result, Waits
from penstock.errors import PenstockError
from penstock.events.headers import ID, QUERIES_TOPIC
from penstock.events.query_status import QueryState, decode_status
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan

LOOKUP_S = 5.0


class BusyError(PenstockError):
    """Too many look for results at once."""


class Results:
    """Glue between the queue and `Waits`."""

    def __init__(self, plan: Plan, config: EdgeConfig, tail: Tail, queue: KafkaTarget) -> None:
        self.waits = Waits(config.waits_max, config.results_max)
        self._plan = plan
        self._tail = tail
        self._queue = queue
        self._offsets = Offsets(queue)
        self._following: dict[str, asyncio.Task[None]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._keeps_event: dict[str, bool] = {}
        self._parked: dict[str, str] = {}  # or paused: which and why, by query
        self._lookups = 0
        self._lookups_max = config.lookups_max

    def nameless(self, way: Way) -> str | None:
        """The first query on a way of which it is known that its results do not tell of which event they are."""
        return next((link.query for link in way if self._keeps_event.get(link.query) is False), None)

    def parked(self, way: Way) -> str | None:
        """Why no result comes on this way until the app is started again; None if one may come."""
        return next((f"query {q} is {self._parked[q]}" for q, *_ in way if q in self._parked), None)

    def begin(self, way: Way) -> list[asyncio.Task[None]]:
        """See everything that the queries on this way write from now on, as soon as the queue answers."""
        starts: list[tuple[str, Callable[[], Any]]] = [(QUERIES_TOPIC, self._follow_progress)]
        starts += [(link.writes, partial(self._follow_output, link)) for link in way]
        for topic, start in starts:
            if topic not in self._following:
                self._following[topic] = asyncio.create_task(start())
        return [self._following[topic] for topic, _ in starts]

    async def follow(self, way: Way, within_s: float) -> bool:
        """Wait until all that the queries on this way write is seen; False if the queue is away."""
        tasks = self.begin(way)
        if all(task.done() for task in tasks):
            return True
        _, late = await asyncio.wait(tasks, timeout=within_s)
        return not late

    async def _follow_progress(self) -> None:
        await self._tail.follow(QUERIES_TOPIC, self._on_progress)

    async def _follow_output(self, link: Link) -> None:
        following = await self._tail.follow(
            link.writes, partial(self._on_output, link.query), partial(self.waits.on_end, link.query)
        )
        self.waits.on_started(link.query, following.positions)

    def _on_output(self, query: str, records: list[Record]) -> None:
        for further in self.waits.on_results(query, map(_result, records)):
            self._ask_ends(further)

    def _on_progress(self, records: list[Record]) -> None:
        for record in records:
            said = decode_status(record.value)
            if said is None:
                continue
            try:
                positions = {
                    topic: {int(partition): offset for partition, offset in offsets.items()}
                    for topic, offsets in said.positions.items()
                }
            except ValueError:
                continue  # no partition has such a name
            if said.app != self._plan.app or said.query not in self._plan.queries:
                continue  # several apps may share a queue
            if said.state in (QueryState.PARKED, QueryState.PAUSED):
                self._parked[said.query] = f"{said.state}: {said.reason or 'it gave no reason'}"
            else:
                self._parked.pop(said.query, None)
            if said.keeps_event is not None:
                self._keeps_event[said.query] = said.keeps_event
            if self.waits.on_positions(said.query, positions):
                self._ask_ends(said.query)

    def on_stored(self, wait: Any, topic: str, partition: int, offset: int) -> None:
        """The event that somebody waits for stands there."""
        if self.waits.on_stored(wait, topic, partition, offset):
            self._ask_ends(wait.query)

    def _ask_ends(self, query: str) -> None:
        if query not in self._asking:
            self._asking[query] = asyncio.create_task(self._hear_ends(query))

    async def _hear_ends(self, query: str) -> None:
        output = self._plan.queries[query].writes
        try:
            while passed := self.waits.passed(query):
                places = [(output, number) for number in range(self._plan.topics[output].partitions)]
                ends = await self._offsets.at(LATEST, places)
                self.waits.on_ends(query, passed, {partition: end for (_, partition), end in ends.items()})
        finally:
            # In the same turn as the last look: whoever asks after it starts another.
            del self._asking[query]

    async def find(self, query: str, id: str, since_ms: int | None) -> bytes | None:
        """A result: remembered, or looked for in the output from a time on; None if it is not there."""
        known = self.waits.remembered(query, id)
        if known is not None or since_ms is None:
            return known
        if self._lookups >= self._lookups_max:
            raise BusyError("too many look for results at once")
        self._lookups += 1
        try:
            output = self._plan.topics[self._plan.queries[query].writes]
            found = await asyncio.to_thread(
                find_record, self._queue, output.name, output.partitions, (ID, id.encode()), since_ms, LOOKUP_S
            )
        finally:
            self._lookups -= 1
        return None if found is None else found.value or b"null"

    async def close(self) -> None:
        """End what is under way."""
        for task in [*self._following.values(), *self._asking.values()]:
            task.cancel()


def _result(record: Record) -> Result:
    id = record.header(ID)
    return Result(id.decode("utf-8", "replace") if id else "", record.partition, record.offset, record.value or b"null")
