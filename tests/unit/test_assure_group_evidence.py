"""Forged histories of transactions and groups: each broken promise is called by its name, honest ones are acquitted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.assure.checker import check
from penstock.assure.history import (
    Ask,
    Assign,
    Begin,
    Commit,
    Committed,
    Decide,
    End,
    Ended,
    Event,
    Outcome,
    Poll,
    Position,
    Send,
    Settle,
)
from penstock.assure.verdict import Doubt, Result

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
Records = Sequence[tuple[int, str]]


def send(
    value: str, offset: int, transaction: str | None = None, topic: str = "orders", source: str | None = None
) -> list[Event]:
    return [
        Send("till", topic, 0, value, f"life-{topic}", transaction, source),
        Settle("till", topic, 0, value, OK, offset),
    ]


def end(transaction: str, commit: bool, outcome: Outcome | None = OK) -> list[Event]:
    asked: list[Event] = [Decide("till", transaction, commit)]
    return asked if outcome is None else [*asked, Ended("till", transaction, commit, outcome)]


def read(
    name: str, records: Records, last: int | None = None, *, committed: bool = False, topic: str = "orders"
) -> list[Event]:
    events: list[Event] = [Assign(name, 1, topic, 0, 0, committed)]
    if records:
        events.append(Poll(name, 1, topic, 0, tuple(records)))
    return events if last is None else [*events, End(name, 1, topic, 0, last)]


def finally_(everything: Records, committed: Records, last: int, topic: str = "orders") -> list[Event]:
    return [
        *read(f"final-{topic}", everything, last, topic=topic),
        *read(f"final-committed-{topic}", committed, last, committed=True, topic=topic),
    ]


TWO: list[Event] = [Begin("till", "t1"), *send("a", 0, "t1"), *send("b", 1, "t1")]
AB = [(0, "a"), (1, "b")]
AFTER: list[Event] = send("z", 3)
ABZ = [*AB, (3, "z")]

SEEN_WHOLE = {
    "committed and seen": [*TWO, *end("t1", True), *AFTER, *finally_(ABZ, ABZ, 4)],
    "aborted and unseen": [*TWO, *end("t1", False), *AFTER, *finally_(ABZ, ABZ[2:], 4)],
    "never ended and unseen": [*TWO, *AFTER, *finally_(ABZ, ABZ[2:], 4)],
    "its end unknown, and seen whole": [*TWO, *end("t1", True, UNKNOWN), *AFTER, *finally_(ABZ, ABZ, 4)],
    "its end unknown, and seen by nobody": [*TWO, *end("t1", True, UNKNOWN), *AFTER, *finally_(ABZ, ABZ[2:], 4)],
    "asked to commit, then aborted, and seen": [
        *TWO, *end("t1", True, UNKNOWN), *end("t1", False), *AFTER, *finally_(ABZ, ABZ, 4),
    ],
    "its owner killed while it asked": [*TWO, *end("t1", True, None), *AFTER, *finally_(ABZ, ABZ, 4)],
    "a reader that leaves out what was aborted": [
        *TWO, *end("t1", False), *AFTER, *read("live", ABZ[2:], committed=True), *finally_(ABZ, ABZ[2:], 4),
    ],
}  # fmt: skip

TORN = {
    "half of a committed transaction": (
        [*TWO, *end("t1", True), *AFTER, *finally_(ABZ, [ABZ[0], ABZ[2]], 4)],
        ["torn-transaction"],
    ),
    "half of a transaction whose end is unknown": (
        [*TWO, *end("t1", True, UNKNOWN), *AFTER, *finally_(ABZ, ABZ[1:], 4)],
        ["torn-transaction"],
    ),
    "committed and not seen": (
        [*TWO, *end("t1", True), *AFTER, *finally_(ABZ, ABZ[2:], 4)],
        ["lost-transaction"],
    ),
    "aborted and seen": (
        [*TWO, *end("t1", False), *AFTER, *finally_(ABZ, ABZ, 4)],
        ["aborted-read"],
    ),
    "never ended, and seen once by a reader that came too early": (
        [*TWO, *AFTER, *read("live", AB[:1], committed=True), *finally_(ABZ, ABZ[2:], 4)],
        ["aborted-read", "skipped-poll", "vanished"],
    ),
    "committed, and seen by a reader of committed records before anybody asked for it": (
        [*TWO, *read("live", AB, committed=True), *end("t1", True), *AFTER, *finally_(ABZ, ABZ, 4)],
        ["aborted-read"],
    ),
    "refused and seen": (
        [*TWO, *end("t1", True, FAIL), *AFTER, *finally_(ABZ, ABZ, 4)],
        ["aborted-read"],
    ),
    "a record of its end unknown that was seen and is gone": (
        [*TWO, *end("t1", True, UNKNOWN), *read("live", AB, committed=True), *AFTER, *finally_(ABZ, ABZ[2:], 4)],
        ["skipped-poll", "torn-transaction", "vanished"],
    ),
    "a committed record that a live reader was led past": (
        [*TWO, *end("t1", True), *AFTER, *read("live", [ABZ[0], ABZ[2]], committed=True), *finally_(ABZ, ABZ, 4)],
        ["skipped-poll"],
    ),
    "without a transaction, and not among the committed": (
        [*TWO, *end("t1", True), *AFTER, *finally_(ABZ, AB, 4)],
        ["lost"],
    ),
    "an offset that means two records to two kinds of readers": (
        [*TWO, *end("t1", True), *AFTER, *finally_(ABZ, [(0, "b"), (1, "a"), (3, "z")], 4)],
        ["inconsistent-offsets"],
    ),
}  # fmt: skip


def commit(member: str, offset: int, outcome: Outcome | None = OK) -> list[Event]:
    asked: list[Event] = [Commit(member, "g", "orders", 0, offset)]
    return asked if outcome is None else [*asked, Committed(member, "g", "orders", 0, outcome)]


def given(member: str, records: Records = (), number: int = 1) -> list[Event]:
    events: list[Event] = [Assign(member, number, "orders", 0, None, False, "g")]
    return [*events, Poll(member, number, "orders", 0, tuple(records))] if records else events


def stands(offset: int | None, who: str = "auditor") -> list[Event]:
    return [Ask(who, "g"), Position(who, "g", "orders", 0, offset)]


THREE = [*send("a", 0), *send("b", 1), *send("c", 2)]
ABC = [(0, "a"), (1, "b"), (2, "c")]
LAST = read("final", ABC, 3)
SHARED = {
    "one after the other": [
        *THREE, *stands(None), *given("m", AB), *commit("m", 2), *stands(2),
        *given("n", ABC[2:]), *commit("n", 3), *LAST, *stands(3),
    ],
    "killed before its commit, so given again": [
        *THREE, *given("m", ABC), *given("n", ABC), *commit("n", 3), *LAST, *stands(3),
    ],
    "an unknown commit that was made": [
        *THREE, *given("m", AB), *commit("m", 2, UNKNOWN), *stands(2), *given("n", ABC[2:]), *commit("n", 3), *LAST,
        *stands(3),
    ],
    "an unknown commit that was not": [
        *THREE, *given("m", AB), *commit("m", 2, None), *stands(None), *given("n", ABC), *commit("n", 3), *LAST,
        *stands(3),
    ],
    "an unknown commit that comes late": [
        *THREE, *given("m", ABC), *commit("m", 1, UNKNOWN), *commit("m", 3), *stands(1), *given("n", ABC[1:]),
        *commit("n", 3), *LAST, *stands(3),
    ],
    "asked while it was committed": [
        *THREE, *given("m", ABC), Ask("auditor", "g"), *commit("m", 3), Position("auditor", "g", "orders", 0, None),
        *LAST, *stands(3),
    ],
    "a fenced member that was refused": [
        *THREE, *given("m", AB), *given("n", ABC), *commit("n", 3), *commit("m", 2, FAIL), *LAST, *stands(3),
    ],
}  # fmt: skip

TAKEN = {
    "a record that no member was given": (
        [*THREE, *given("m", [ABC[0]]), *given("m", [ABC[2]], 2), *commit("m", 3), *LAST, *stands(3)],
        ["missed-by-group"],
    ),
    "a position that was acknowledged and is gone": (
        [*THREE, *given("m", ABC), *commit("m", 3), *stands(None), *LAST, *stands(3)],
        ["position-lost"],
    ),
    "a position older than the acknowledged one": (
        [*THREE, *given("m", ABC), *commit("m", 2), *commit("m", 3), *stands(2), *LAST, *stands(3)],
        ["position-lost"],
    ),
    "a position that was refused": (
        [*THREE, *given("m", ABC), *commit("m", 3, FAIL), *stands(3), *commit("m", 3), *LAST, *stands(3)],
        ["position-lost"],
    ),
    "a position that nobody committed": (
        [*THREE, *given("m", ABC), *stands(2), *commit("m", 3), *LAST, *stands(3)],
        ["position-lost"],
    ),
    "a position from a member that had lost the partition": (
        [
            *THREE, *given("m", AB), *given("n", ABC), *commit("n", 3), *commit("m", 2), *commit("n", 3),
            *LAST, *stands(3),
        ],
        ["position-taken-back"],
    ),
}  # fmt: skip


def copy(name: str, source: int, offset: int, after: int, commit: bool = True) -> list[Event]:
    value = f"{source}@{name}"
    return [
        Begin("till", name, "g"),
        *send(value, offset, name, "copies", f"orders/0/{source}"),
        Commit("till", "g", "orders", 0, after, name),
        *end(name, commit),
    ]


INPUTS: list[Event] = [
    *send("a", 0),
    *send("b", 1),
    Assign("till", 1, "orders", 0, None, True, "g"),
    Poll("till", 1, "orders", 0, tuple(AB)),
]
COPIED = {
    "each once": [
        *INPUTS, *copy("t1", 0, 0, 1), *copy("t2", 1, 2, 2), *finally_(AB, AB, 2),
        *finally_([(0, "0@t1"), (2, "1@t2")], [(0, "0@t1"), (2, "1@t2")], 4, "copies"), *stands(2),
    ],
    "again after an abort": [
        *INPUTS, *copy("t1", 0, 0, 1), *copy("t2", 1, 2, 2, False), *stands(1), *copy("t3", 1, 4, 2),
        *finally_(AB, AB, 2),
        *finally_([(0, "0@t1"), (2, "1@t2"), (4, "1@t3")], [(0, "0@t1"), (4, "1@t3")], 6, "copies"), *stands(2),
    ],
}  # fmt: skip
MISCOPIED = {
    "an input with two results": (
        [
            *INPUTS, *copy("t1", 0, 0, 1), *copy("t2", 1, 2, 2), *copy("t3", 1, 4, 2), *finally_(AB, AB, 2),
            *finally_([(0, "0@t1"), (2, "1@t2"), (4, "1@t3")], [(0, "0@t1"), (2, "1@t2"), (4, "1@t3")], 6, "copies"),
            *stands(2),
        ],
        ["input-twice"],
    ),
    "a position committed without its result": (
        [
            *INPUTS, *copy("t1", 0, 0, 2), *finally_(AB, AB, 2),
            *finally_([(0, "0@t1")], [(0, "0@t1")], 2, "copies"), *stands(2),
        ],
        ["input-dropped"],
    ),
    "the position of an aborted transaction": (
        [
            *INPUTS, *copy("t1", 0, 0, 1), *copy("t2", 1, 2, 2, False), *finally_(AB, AB, 2),
            *finally_([(0, "0@t1"), (2, "1@t2")], [(0, "0@t1")], 4, "copies"), *stands(2),
        ],
        ["input-dropped", "position-lost"],
    ),
}  # fmt: skip

HONEST = SEEN_WHOLE | SHARED | COPIED
FORGED = TORN | TAKEN | MISCOPIED


@pytest.mark.parametrize("story", HONEST)
def test_an_honest_history_is_acquitted(story: str) -> None:
    verdict = check(HONEST[story])
    assert (verdict.result, verdict.findings, verdict.reasons) == (Result.VALID, (), ())


@pytest.mark.parametrize("story", FORGED)
def test_a_forged_history_is_convicted_by_name(story: str) -> None:
    history, expected = FORGED[story]
    verdict = check(history)
    assert verdict.result is Result.INVALID
    assert sorted(verdict.violations) == expected


def test_transactions_that_nobody_read_as_committed_prove_nothing() -> None:
    verdict = check([*TWO, *end("t1", True), *AFTER, *read("final", ABZ, 4)])
    assert list(verdict.doubts) == [Doubt.NO_FINAL_READ]


def test_a_group_that_did_not_come_to_the_end_proves_nothing() -> None:
    verdict = check([*THREE, *given("m", AB), *commit("m", 2), *LAST, *stands(2)])
    assert list(verdict.doubts) == [Doubt.GROUP_BEHIND]
