"""POST …?wait=<query> holds a request until its event's result is there; GET /results/<query>/<id> asks again."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import NamedTuple

from starlette.routing import BaseRoute, Route

from penstock.connect import responses as answers
from penstock.connect.asgi import Receive, Scope, Send, reply
from penstock.connect.responses import Answer
from penstock.edge.intake import Intake, now_ms
from penstock.edge.results import rules as wait_rules
from penstock.edge.results.followed_outputs import BusyError, Results
from penstock.edge.results.query_paths import ways_from
from penstock.edge.results.rules import Asked, read_since, read_wait
from penstock.edge.results.waits import Wait
from penstock.errors import PenstockError
from penstock.events.event import Event
from penstock.plan.plan import Plan

RESULTS_PREFIX = "/results/"


def result_routes(plan: Plan, results: Results) -> list[BaseRoute]:
    """Where to ask again, for the edge's port."""
    return [Route(RESULTS_PREFIX + "{path:path}", endpoint=ResultDesk(plan, results), methods=["GET"])]


class Pending(NamedTuple):
    """A stored event whose sender waits. Not the event: that is up to 30 s of many bodies that no bound counts."""

    id: str
    asked: Asked
    wait: Wait
    result: asyncio.Future[bytes | None]
    began: float
    since_ms: int


class Waiting:
    """Requests that wait, at the doors of one edge."""

    def __init__(self, collector: Intake, results: Results) -> None:
        self._collector = collector
        self._results = results
        self._held: set[asyncio.Future[bytes | None]] = set()
        self._is_stopping = False
        self._ways = {door.topic: ways_from(collector.plan, door.topic) for door in collector.plan.doors.values()}
        # Finding the end of a topic takes half a second: not of the first who waits.
        for ways in self._ways.values():
            for way in ways.values():
                results.begin(way)

    def asked(self, topic: str, query_string: bytes) -> Asked | None:
        """What a request wants to wait for; ValueError says why it cannot."""
        asked = read_wait(query_string, self._ways[topic], self._collector.config.wait_ms_max)
        if asked is not None and (query := self._results.nameless(asked.way)):
            raise ValueError(wait_rules.nameless_fault(query, asked.query))
        return asked

    def stop(self) -> None:
        """Nobody waits any longer: an edge that ends says where to ask, as after a time out."""
        self._is_stopping = True
        for result in self._held:
            result.cancel()

    async def store(self, topic: str, event: Event, began: float, asked: Asked) -> Answer | Pending:
        """Store one event; what to wait for then, or why there is nothing."""
        counters, waits = self._collector.counters, self._results.waits
        since_ms = now_ms()
        if not await self._results.follow(asked.way, self._collector.config.store_deadline_ms / 1000):
            counters.waits["queue_away"] += 1
            return answers.overloaded(False, "the queue does not answer")
        result: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        # Before the event is sent: its result may be there before the acknowledgement is.
        wait = waits.add(asked.way, event.id, partial(_settle, result))
        if wait is None:
            counters.waits["overload"] += 1
            return answers.overloaded(self._collector.drops(topic), "too many requests wait for results")
        is_stored = False
        try:
            storing = self._collector.store(topic, [event])
            await storing.done
            answer = await self._collector.settle(topic, [event], storing, began)
            is_stored = not storing.failed
        finally:
            if not is_stored:
                counters.waits["unstored"] += 1
                waits.remove(wait)
        if not is_stored:
            return answer
        self._results.on_stored(wait, topic, storing.partition, storing.offset)
        return Pending(event.id, asked, wait, result, began, since_ms)

    async def result(self, pending: Pending) -> Answer:
        """Wait for the result of a stored event."""
        id, asked, wait, result, began, since_ms = pending
        counters = self._collector.counters
        left_s = asked.timeout_ms / 1000 - (time.perf_counter() - began)
        parked = self._results.parked(asked.way)
        self._held.add(result)
        try:
            await asyncio.wait([result], timeout=0.0 if self._is_stopping or parked else max(0.0, left_s))
        finally:
            self._held.discard(result)
            self._results.waits.remove(wait)
        if not result.done() or result.cancelled():
            counters.waits["timeout"] += 1
            return wait_rules.not_yet(id, asked.query, since_ms, parked)
        counters.wait.add((time.perf_counter() - began) * 1000)
        value = result.result()
        counters.waits["none" if value is None else "result"] += 1
        if value is not None:
            return wait_rules.with_result(id, value)
        return wait_rules.without_result(id, wait.query, self._collector.plan.queries[wait.query].options.watermark)


def _settle(result: asyncio.Future[bytes | None], value: bytes | None) -> None:
    if not result.done():  # given up in the same turn
        result.set_result(value)


class ResultDesk:
    """GET /results/<query>/<id>[?since=MS]; an ASGI application."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self._plan = plan
        self._results = results

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await reply(send, await self._answer(scope))

    async def _answer(self, scope: Scope) -> Answer:
        query, _, id = scope["path"][len(RESULTS_PREFIX) :].partition("/")
        if query not in self._plan.queries:
            return answers.failure(404, f"there is no query {query[:100]!r}", known=list(self._plan.queries))
        try:
            found = await self._results.find(query, id, read_since(scope["query_string"]))
        except ValueError as wrong:
            return answers.failure(400, str(wrong))
        except BusyError as busy:
            return answers.overloaded(False, str(busy))
        except PenstockError as away:
            return answers.overloaded(False, str(away))
        return wait_rules.not_found(id, query) if found is None else wait_rules.with_result(id, found)
