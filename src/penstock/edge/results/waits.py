"""Requests that wait for the result of their event: who waits, what came, and when nothing will come. Pure.

A query that filters an event out says nothing of it. What is known is up to where it has read: once its committed
position has passed the event and everything that it had written by then was seen here, there is no result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.edge.results.query_paths import Way

RESULTS_BYTES_MAX = 64 * 1024 * 1024  # remembered for each query, however large its results are
Offsets = Mapping[int, int]


class Result(NamedTuple):
    """A record of a query's output."""

    id: str
    partition: int
    offset: int
    value: bytes


class Wait:
    """One request: where its event is on its way, and whom to tell."""

    __slots__ = ("ends", "id", "is_over", "is_passed", "place", "settle", "stage", "way")

    def __init__(self, way: Way, id: str, settle: Callable[[bytes | None], None]) -> None:
        self.way = way
        self.id = id
        self.settle = settle
        self.stage = 0
        self.place: tuple[str, int, int] | None = None  # topic, partition and offset that the query reads next
        self.is_passed = False
        self.ends: Offsets | None = None  # of the query's output, asked for after it had passed the place
        self.is_over = False

    @property
    def query(self) -> str:
        """The query whose result is awaited at this stage."""
        return self.way[self.stage].query


class Remembered:
    """The latest results of one query, by id."""

    def __init__(self, results_max: int, bytes_max: int = RESULTS_BYTES_MAX) -> None:
        self._results_max = results_max
        self._bytes_max = bytes_max
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def add(self, id: str, value: bytes) -> None:
        """Remember a result; the oldest go when there are too many, or too much of them."""
        self._bytes += len(value) - len(self._values.pop(id, b""))
        self._values[id] = value
        while len(self._values) > self._results_max or (self._bytes > self._bytes_max and len(self._values) > 1):
            self._bytes -= len(self._values.popitem(last=False)[1])

    def get(self, id: str) -> bytes | None:
        """The latest result with that id."""
        return self._values.get(id)


class Waits:
    """All who wait at one edge."""

    def __init__(self, waits_max: int, results_max: int) -> None:
        self._waits_max = waits_max
        self._results_max = results_max
        self._waiting: dict[str, dict[str, list[Wait]]] = {}
        self._passed: dict[str, list[Wait]] = {}
        self._positions: dict[str, Mapping[str, Offsets]] = {}
        self._seen: dict[str, dict[int, int]] = {}
        self._remembered: dict[str, Remembered] = {}
        self.count = 0

    def add(self, way: Way, id: str, settle: Callable[[bytes | None], None]) -> Wait | None:
        """Somebody waits, before the event is sent; None if too many do. `settle` gets a result, or None for none."""
        if self.count >= self._waits_max:
            return None
        self.count += 1
        wait = Wait(way, id, settle)
        self._list(wait)
        return wait

    def remove(self, wait: Wait) -> None:
        """Nobody waits any more, whether it was settled or not; call it once."""
        self.count -= 1
        wait.is_over = True
        self._unlist(wait)

    def on_started(self, query: str, ends: Offsets) -> None:
        """The output of a query is followed from here on."""
        self._seen.setdefault(query, dict(ends))
        self._remembered.setdefault(query, Remembered(self._results_max))

    def on_stored(self, wait: Wait, topic: str, partition: int, offset: int) -> bool:
        """Where the event stands; True: ask for the ends of the output that it waits for."""
        if wait.is_over or wait.place is not None:
            return False  # its result was faster than the acknowledgement
        wait.place = (topic, partition, offset)
        return self._pass(wait)

    def on_results(self, query: str, results: Iterable[Result]) -> list[str]:
        """What a query wrote, in its order; the queries further on whose ends must be asked for."""
        seen, remembered = self._seen.setdefault(query, {}), self._remembered.get(query)
        waiting, ask = self._waiting.get(query, {}), []
        for result in results:
            seen[result.partition] = result.offset + 1
            if not result.id:
                continue
            if remembered is not None:
                remembered.add(result.id, result.value)
            for wait in waiting.pop(result.id, ()):
                if wait.stage == len(wait.way) - 1:
                    self._settle(wait, result.value)
                elif self._advance(wait, result):
                    ask.append(wait.query)
        self._decide(query)
        return ask

    def on_end(self, query: str, partition: int, offset: int) -> None:
        """A partition of a query's output was read up to here: behind its last record a transaction may have ended."""
        seen = self._seen.setdefault(query, {})
        seen[partition] = max(seen.get(partition, 0), offset)
        self._decide(query)

    def _advance(self, wait: Wait, result: Result) -> bool:
        self._unlist(wait)
        topic = wait.way[wait.stage].writes
        wait.stage += 1
        wait.place, wait.is_passed, wait.ends = (topic, result.partition, result.offset), False, None
        self._list(wait)
        return self._pass(wait)

    def on_positions(self, query: str, positions: Mapping[str, Offsets]) -> bool:
        """Up to where a query has read and written for good; True: ask for the ends of its output."""
        self._positions[query] = positions
        waiting = [wait for waits in self._waiting.get(query, {}).values() for wait in waits]
        return bool([wait for wait in waiting if self._pass(wait)])

    def passed(self, query: str) -> list[Wait]:
        """Who may hear of nothing once the output's ends, asked for from now on, were seen."""
        return [wait for wait in self._passed.get(query, ()) if wait.ends is None]

    def on_ends(self, query: str, passed: Iterable[Wait], ends: Offsets) -> None:
        """The ends of a query's output, asked for after `passed` was taken."""
        for wait in passed:
            if wait.is_passed and wait.query == query:
                wait.ends = ends
        self._decide(query)

    def remembered(self, query: str, id: str) -> bytes | None:
        """A result that was seen lately."""
        known = self._remembered.get(query)
        return known.get(id) if known else None

    def _pass(self, wait: Wait) -> bool:
        if wait.place is None or wait.is_passed:
            return False
        topic, partition, offset = wait.place
        if self._positions.get(wait.query, {}).get(topic, {}).get(partition, -1) <= offset:
            return False
        wait.is_passed = True
        self._passed.setdefault(wait.query, []).append(wait)
        return True

    def _decide(self, query: str) -> None:
        seen = self._seen.get(query, {})
        for wait in list(self._passed.get(query, ())):
            if wait.ends is not None and all(seen.get(partition, 0) >= end for partition, end in wait.ends.items()):
                self._settle(wait, None)

    def _settle(self, wait: Wait, value: bytes | None) -> None:
        wait.is_over = True
        self._unlist(wait)
        wait.settle(value)

    def _list(self, wait: Wait) -> None:
        self._waiting.setdefault(wait.query, {}).setdefault(wait.id, []).append(wait)

    def _unlist(self, wait: Wait) -> None:
        if wait.is_passed and wait in self._passed.get(wait.query, ()):
            self._passed[wait.query].remove(wait)
        waiting = self._waiting.get(wait.query, {})
        waits = waiting.get(wait.id, [])
        if wait in waits:
            waits.remove(wait)
            if not waits:
                del waiting[wait.id]
