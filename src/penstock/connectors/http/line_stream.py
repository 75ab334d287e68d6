"""NDJSON: lines are stored while the rest of the body is still on its way; a full queue slows the sender down.

A stream may last: in each edge.request_deadline_ms it must bring a whole line and BYTES_PER_S_MIN; else 408.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from penstock.config.setting import SECOND_MS
from penstock.connect.asgi import LATE, RENEW, LateError, Receive, Scope, next_chunk
from penstock.connect.not_stored import TOO_LARGE
from penstock.connect.responses import Answer
from penstock.connectors.http.ndjson import Line, Lines, Pace, Tally
from penstock.edge.admission import Admission, RefusedError
from penstock.edge.intake import Intake, Storing, fresh_ids, now_ms
from penstock.edge.memory_budget import EVENT_OVERHEAD_BYTES
from penstock.events.event import Event

WINDOW_BYTES = 4 * 1024 * 1024  # of one request, handed over and not yet acknowledged
ROOM_AGAIN_S = 0.005
BYTES_PER_S_MIN = 1024  # less is a connection held for nothing (slow loris): send events one by one instead


class _Part(NamedTuple):
    storing: Storing
    events: list[Event]
    numbers: list[int]
    held: int
    began: float


class LineStream:
    """One request."""

    def __init__(self, collector: Intake, admission: Admission) -> None:
        self._collector = collector
        self._admission = admission
        self._lines = Lines(admission.event_bytes_max)
        self._pace = Pace(BYTES_PER_S_MIN * collector.config.request_deadline_ms // SECOND_MS)
        self._parts: deque[_Part] = deque()
        self._under_way = 0
        self.tally = Tally()

    async def run(self, scope: Scope, receive: Receive) -> Answer:
        """Store what comes until the body ends, and tell what became of it."""
        cut = ""
        renew: Callable[[], None] = scope["state"][RENEW]
        try:
            more = True
            while more:
                chunk, more = await next_chunk(scope, receive)
                lines = self._lines.feed(chunk)
                await self._store(scope, lines)
                # After the store: the time that the queue took is not the sender's.
                if self._pace.on_chunk(len(chunk), len(lines)):
                    renew()
            await self._store(scope, self._lines.end())
        except LateError:
            cut = (
                f"in each {self._collector.config.request_deadline_ms} ms must come a whole line and "
                f"{BYTES_PER_S_MIN} bytes a second: what was accepted is stored"
            )
        finally:
            while self._parts:
                await self._settle_one()
        self._collector.counters.refused["late"] += bool(cut)
        return self.tally.answer(cut)

    async def _store(self, scope: Scope, lines: list[Line]) -> None:
        if self.tally.unstored:
            # The rest is read, since most clients send all before they listen, but not tried.
            for number, _ in lines:
                self.tally.miss(number, "not tried, the queue is away")
            return
        events, numbers = self._admit(lines)
        if not events:
            return
        held = sum([len(event.value) for event in events]) + EVENT_OVERHEAD_BYTES * len(events)
        while not self._collector.room.take(held):
            if self._parts:
                await self._settle_one()
            elif scope.get(LATE):
                raise LateError
            else:
                await asyncio.sleep(ROOM_AGAIN_S)
        self._under_way += held
        began = time.perf_counter()
        self._parts.append(_Part(self._collector.store(self._admission.topic, events), events, numbers, held, began))
        while self._under_way > WINDOW_BYTES or (self._parts and self._parts[0].storing.done.done()):
            await self._settle_one()

    def _admit(self, lines: list[Line]) -> tuple[list[Event], list[int]]:
        fresh = [""] * len(lines) if self._admission.has_identity else fresh_ids(len(lines))
        admit, events, numbers = self._admission.admit, [], []
        now = now_ms()
        for (number, line), new_id in zip(lines, fresh, strict=True):
            if line is None:
                self._refuse(number, f"a line has at most {self._admission.event_bytes_max} bytes", TOO_LARGE)
                continue
            try:
                key, id = admit(line, now)
            except RefusedError as wrong:
                self._refuse(number, str(wrong), wrong.status)
                continue
            events.append(Event(line, key, id or new_id))
            numbers.append(number)
        if too_large := dict(self._collector.oversized(self._admission.topic, events)):
            for at, fault in too_large.items():
                self._refuse(numbers[at], fault, TOO_LARGE)
            events = [event for at, event in enumerate(events) if at not in too_large]
            numbers = [number for at, number in enumerate(numbers) if at not in too_large]
        return events, numbers

    def _refuse(self, number: int, reason: str, status: int) -> None:
        self.tally.refuse(number, reason, status)
        self._collector.counters.refused["line"] += 1

    async def _settle_one(self) -> None:
        part, topic = self._parts[0], self._admission.topic
        await part.storing.done
        self._parts.popleft()
        self._under_way -= part.held
        self._collector.room.give(part.held)
        failed = await self._collector.count(topic, part.events, part.storing, part.began)
        for at, failure in failed.items():
            if failure.is_permanent:
                self.tally.refuse(part.numbers[at], failure.reason, failure.status)
            else:
                self.tally.miss(part.numbers[at], failure.reason)
        self.tally.accepted += len(part.numbers) - len(failed)
