"""Who waits hears of its own result, of none, or nothing; and memory is bounded."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from penstock.edge.results.query_paths import Link, ways_from
from penstock.edge.results.waits import Remembered, Result, Wait, Waits

DECIDE = (Link("decide", "decisions"),)
JUDGE = (*DECIDE, Link("judge", "verdicts"))


class Told:
    """What one request heard."""

    def __init__(self) -> None:
        self.all: list[bytes | None] = []

    def __call__(self, value: bytes | None) -> None:
        self.all.append(value)


def started(waits_max: int = 10, results_max: int = 10) -> Waits:
    waits = Waits(waits_max, results_max)
    waits.on_started("decide", {0: 0, 1: 0})
    waits.on_started("judge", {0: 0})
    return waits


def waiting(waits: Waits, id: str, way: Any = DECIDE) -> tuple[Wait, Told]:
    told = Told()
    wait = waits.add(way, id, told)
    assert wait is not None
    return wait, told


def test_a_result_reaches_everybody_who_waits_for_its_id_and_nobody_else() -> None:
    waits = started()
    _, first = waiting(waits, "a")
    _, again = waiting(waits, "a")
    _, other = waiting(waits, "b")
    waits.on_results("judge", [Result("a", 0, 0, b"not of this query")])
    waits.on_results("decide", [Result("a", 0, 0, b"1"), Result("", 0, 1, b"without an id")])
    assert (first.all, again.all, other.all) == ([b"1"], [b"1"], [])


def test_a_result_may_be_faster_than_the_acknowledgement() -> None:
    waits = started()
    wait, told = waiting(waits, "a")
    waits.on_positions("decide", {"purchases": {0: 100}})
    waits.on_results("decide", [Result("a", 0, 0, b"1")])
    assert not waits.on_stored(wait, "purchases", 0, 5)
    assert told.all == [b"1"]


def test_no_result_is_told_once_the_query_passed_and_all_that_it_wrote_was_seen() -> None:
    """Positions up to the event say nothing; past it the output's end must be seen first."""
    waits = started()
    wait, told = waiting(waits, "a")
    assert not waits.on_stored(wait, "purchases", 1, 5)
    assert not waits.on_positions("decide", {"purchases": {0: 9, 1: 5}})
    assert waits.on_positions("decide", {"purchases": {0: 9, 1: 6}})
    passed = waits.passed("decide")
    assert passed == [wait]
    waits.on_ends("decide", passed, {0: 0, 1: 2})
    waits.on_results("decide", [Result("other", 1, 0, b"")])
    assert told.all == []
    waits.on_results("decide", [Result("other", 1, 1, b"")])
    assert told.all == [None]


def test_a_result_that_comes_after_the_position_is_still_the_answer() -> None:
    """The report may overtake the result: that is why the ends are asked for."""
    waits = started()
    wait, told = waiting(waits, "a")
    waits.on_stored(wait, "purchases", 0, 0)
    assert waits.on_positions("decide", {"purchases": {0: 1}})
    waits.on_ends("decide", waits.passed("decide"), {0: 1, 1: 0})
    waits.on_positions("decide", {"purchases": {0: 1}})
    assert told.all == []
    waits.on_results("decide", [Result("a", 0, 0, b"late")])
    assert told.all == [b"late"]


def test_ends_asked_for_before_an_event_passed_say_nothing_of_it() -> None:
    waits = started()
    first, _ = waiting(waits, "a")
    waits.on_stored(first, "purchases", 0, 0)
    waits.on_positions("decide", {"purchases": {0: 1}})
    asked = waits.passed("decide")
    second, told = waiting(waits, "b")
    waits.on_stored(second, "purchases", 0, 1)
    waits.on_positions("decide", {"purchases": {0: 2}})
    waits.on_ends("decide", asked, {0: 0, 1: 0})
    assert told.all == []
    assert waits.passed("decide") == [second]


def test_an_event_is_followed_through_a_query_to_the_next() -> None:
    waits = started()
    wait, told = waiting(waits, "a", JUDGE)
    waits.on_stored(wait, "purchases", 0, 0)
    waits.on_positions("judge", {"decisions": {0: 8}})
    assert waits.on_results("decide", [Result("a", 0, 7, b"1")]) == ["judge"]
    assert waits.passed("judge") == [wait]
    waits.on_results("judge", [Result("a", 0, 0, b"2")])
    assert told.all == [b"2"]


def test_who_left_hears_nothing_and_leaves_nothing_behind() -> None:
    waits = started(waits_max=1)
    wait, told = waiting(waits, "a")
    assert waits.add(DECIDE, "b", told) is None, "no more than the bound may wait"
    waits.on_stored(wait, "purchases", 0, 0)
    waits.on_positions("decide", {"purchases": {0: 1}})
    waits.remove(wait)
    waits.on_ends("decide", [wait], {0: 0, 1: 0})
    waits.on_results("decide", [Result("a", 0, 0, b"1")])
    assert told.all == []
    assert (waits.count, waits.passed("decide")) == (0, [])
    assert waits.add(DECIDE, "b", told) is not None


def test_everybody_hears_at_most_once_and_never_the_wrong_thing() -> None:
    """Random orders of stored, results, positions and ends, against what the query really did."""
    for seed in range(300):
        chance = random.Random(seed)
        waits = started(waits_max=100)
        kept = {f"e{n}": chance.random() < 0.5 for n in range(20)}
        asks = {id: waiting(waits, id) for id in kept}
        for offset, (wait, _) in enumerate(asks.values()):
            waits.on_stored(wait, "purchases", 0, offset)
        written = [id for id in kept if kept[id]]
        read = seen = 0
        while read < len(kept) or seen < len(written):
            read = min(len(kept), read + chance.randrange(3))
            now = [id for id in list(kept)[:read] if kept[id]]
            step = chance.randrange(3)
            if step == 0 and seen < len(now):
                waits.on_results("decide", [Result(now[seen], 0, seen, now[seen].encode())])
                seen += 1
            elif step == 1:
                waits.on_positions("decide", {"purchases": {0: read}})
            else:
                waits.on_ends("decide", waits.passed("decide"), {0: len(now), 1: 0})
        waits.on_positions("decide", {"purchases": {0: read}})
        waits.on_ends("decide", waits.passed("decide"), {0: seen, 1: 0})
        for id, (_, told) in asks.items():
            assert told.all == [id.encode() if kept[id] else None], f"seed {seed}"


def test_the_latest_results_are_remembered_within_count_and_bytes() -> None:
    remembered = Remembered(results_max=3, bytes_max=10)
    for number in range(5):
        remembered.add(str(number), b"x")
    assert [remembered.get(str(number)) for number in range(5)] == [None, None, b"x", b"x", b"x"]
    remembered.add("2", b"again")
    remembered.add("5", b"12345")
    assert remembered.get("2") == b"again"
    assert remembered.get("3") is None
    remembered.add("huge", b"x" * 100)
    assert remembered.get("huge") == b"x" * 100, "the latest is there however large it is"
    assert remembered.get("5") is None


def test_ways_are_the_shortest_and_only_downstream() -> None:
    queries = [
        SimpleNamespace(name="decide", reads=("purchases",), writes="decisions"),
        SimpleNamespace(name="judge", reads=("decisions", "cards"), writes="verdicts"),
        SimpleNamespace(name="all", reads=("verdicts", "purchases"), writes="everything"),
        SimpleNamespace(name="cards", reads=("applications",), writes="cards"),
    ]
    plan: Any = SimpleNamespace(queries={query.name: query for query in queries})
    assert ways_from(plan, "purchases") == {
        "decide": DECIDE, "all": (Link("all", "everything"),), "judge": JUDGE,
    }  # fmt: skip
    assert list(ways_from(plan, "applications")) == ["cards", "judge", "all"]
    assert ways_from(plan, "nothing") == {}
