"""Forged histories: each broken promise is called by its name, and an honest history is not accused."""

from __future__ import annotations

import pytest

from penstock.assure.checker import check
from penstock.assure.history import Assign, End, Event, Outcome, Poll, Send, Settle, Trim, Unrecorded
from penstock.assure.verdict import Doubt, Result, Verdict, Violation

OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN


DEALINGS = {
    "torn-transaction", "lost-transaction", "aborted-read", "input-twice", "input-dropped",
    "missed-by-group", "position-lost", "position-taken-back",
}  # fmt: skip


def send(
    value: str, outcome: Outcome | None = OK, offset: int | None = None, producer: str | None = "p1"
) -> list[Event]:
    call: list[Event] = [Send("writer", "orders", 0, value, producer)]
    if outcome is not None:
        call.append(Settle("writer", "orders", 0, value, outcome, offset))
    return call


def read(process: str, *polls: list[tuple[int, str]], start: int | None = 0, end: int | None = None) -> list[Event]:
    events: list[Event] = [Assign(process, 1, "orders", 0, start)]
    events += [Poll(process, 1, "orders", 0, tuple(records)) for records in polls]
    if end is not None:
        events.append(End(process, 1, "orders", 0, end))
    return events


THREE = [*send("a", OK, 0), *send("b", OK, 1), *send("c", OK, 2)]
ABC = [(0, "a"), (1, "b"), (2, "c")]
HONEST = [*THREE, *read("early", ABC[:1], ABC[1:]), *read("final", ABC, end=3)]


def names(verdict: Verdict) -> list[str]:
    return sorted(verdict.violations)


def test_an_honest_history_is_valid() -> None:
    verdict = check(HONEST)
    assert verdict.result is Result.VALID
    assert (verdict.findings, verdict.reasons) == ((), ())
    assert (verdict.tally.writes, verdict.tally.acked, verdict.tally.offsets_read) == (3, 3, 3)


FORGED = {
    "offset read as two values": (
        [*THREE, *send("d", UNKNOWN), *read("early", [(0, "a"), (1, "d")]), *read("final", ABC, end=3)],
        ["inconsistent-offsets"],
    ),
    "offset acknowledged twice": (
        [*send("a", OK, 0), *send("b", OK, 0), *read("final", [(0, "a")], end=1)],
        ["inconsistent-offsets", "lost"],
    ),
    "idempotent value at two offsets": (
        [*THREE, *read("final", [*ABC, (3, "b")], end=4)],
        ["duplicate"],
    ),
    "acked, and a reader passed it": (
        [*THREE, *read("early", [(0, "a"), (2, "c")])],
        ["lost"],
    ),
    "acked at the end, and the final read ends before it": (
        [*THREE, *read("final", ABC[:2], end=2)],
        ["lost"],
    ),
    "acked without an offset, and the final read missed it": (
        [*THREE, *send("d", OK), *read("final", ABC, end=3)],
        ["lost"],
    ),
    "acked and read before, but gone at the end": (
        [*THREE, *read("early", ABC), *read("final", ABC[:2], end=2)],
        ["lost"],
    ),
    "acked, but its offset holds another": (
        [*THREE, *send("d", UNKNOWN), *read("final", [(0, "a"), (1, "d"), (2, "c")], end=3)],
        ["lost"],
    ),
    "acked, but a reader found another in its place": (
        [*THREE, *send("d", UNKNOWN), *read("early", [(0, "a"), (1, "d"), (2, "c")])],
        ["lost"],
    ),
    "acked, and a reader of the tail met the end without it": (
        [*THREE, *read("tail", [(1, "b")], start=1, end=3)],
        ["lost"],
    ),
    "acked, and the log ends before what it just gave": (
        [*THREE, *read("final", ABC, end=2)],
        ["lost"],
    ),
    "the head of the log is gone": (
        [*THREE, *read("final", ABC[1:], end=3)],
        ["lost"],
    ),
    "read before it was durable": (
        [*THREE, *send("d", None), *read("early", [*ABC, (3, "d")]), *read("final", ABC, end=3)],
        ["vanished"],
    ),
    "read but never sent": (
        [*THREE, *read("final", [*ABC, (3, "x")], end=4)],
        ["phantom"],
    ),
    "never sent, read once and then gone": (
        [*THREE, *read("early", [*ABC, (3, "x")]), *read("final", ABC, end=3)],
        ["phantom"],
    ),
    "read in a partition it was not sent to": (
        [*HONEST, Assign("final", 1, "orders", 1, 0), Poll("final", 1, "orders", 1, ((0, "a"),))],
        ["phantom"],
    ),
    "read though its send failed": (
        [*THREE, *send("d", FAIL), *read("final", [*ABC, (3, "d")], end=4)],
        ["failed-write-read"],
    ),
    "acked at one offset and read at another": (
        [*send("a", OK, 0), *send("b", OK, 5), *read("final", ABC[:2], end=2)],
        ["acked-at-other-offset"],
    ),
    "acked at one offset and read at another, before any final read": (
        [*send("a", OK, 0), *send("b", OK, 5), *read("early", ABC[:2])],
        ["acked-at-other-offset"],
    ),
    "sent again and acked at an offset that holds another": (
        [*send("a", UNKNOWN), *send("a", OK, 1), *send("b", UNKNOWN), *read("final", ABC[:2], end=2)],
        ["acked-at-other-offset"],
    ),
    "acked at an offset that holds another, without idempotence": (
        [*send("a", OK, 1, None), *send("b", UNKNOWN, None, None), *read("final", ABC[:2], end=2)],
        ["acked-at-other-offset"],
    ),
    "one producer's sends in another order": (
        [*send("a", OK, 1), *send("b", OK, 0), *read("final", [(0, "b"), (1, "a")], end=2)],
        ["reordered"],
    ),
    "an assignment led past what others read": (
        [
            *send("a", UNKNOWN), *send("b", UNKNOWN), *send("c", OK, 2),
            *read("early", [(0, "a"), (2, "c")]), *read("final", ABC, end=3),
        ],
        ["skipped-poll"],
    ),
    "an assignment led back": (
        [*THREE, *read("early", ABC, ABC[1:]), *read("final", ABC, end=3)],
        ["backward-poll"],
    ),
    "the final read led back": (
        [*THREE, *read("final", ABC, ABC[1:2], end=3)],
        ["backward-poll"],
    ),
    "an assignment begun before its start": (
        [*THREE, *read("early", ABC, start=1), *read("final", ABC, end=3)],
        ["backward-poll"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", FORGED)
def test_a_forged_history_is_convicted_by_name(story: str) -> None:
    history, expected = FORGED[story]
    verdict = check(history)
    assert verdict.result is Result.INVALID
    assert names(verdict) == expected


def test_every_violation_has_a_forged_history() -> None:
    """Those of transactions and groups stand in test_assure_group_evidence."""
    forged = {name for _, expected in FORGED.values() for name in expected}
    assert forged == {violation.value for violation in Violation} - DEALINGS


ALLOWED = {
    "a timeout that was written": [*THREE, *send("d", UNKNOWN), *read("final", [*ABC, (3, "d")], end=4)],
    "a timeout that was not": [*THREE, *send("d", UNKNOWN), *read("final", ABC, end=3)],
    "a send never settled": [*THREE, *send("d", None), *read("final", [*ABC, (3, "d")], end=4)],
    "a repeat without idempotence": [*send("a", OK, 1, None), *read("final", [(0, "a"), (1, "a")], end=2)],
    "a value sent again after a timeout": [
        *send("a", UNKNOWN), *send("a", OK, 1), *read("final", [(0, "a"), (1, "a")], end=2),
    ],
    "a value sent again after a failure": [
        *send("a", FAIL), *send("a", OK, 0), *read("final", ABC[:1], end=1),
    ],
    "offsets that hold nothing": [
        *send("a", OK, 0), *send("b", OK, 2), *read("final", [(0, "a"), (2, "b")], end=4),
    ],
    "two producers in any order": [
        *send("a", OK, 1), *send("b", OK, 0, "p2"), *read("final", [(0, "b"), (1, "a")], end=2),
    ],
    "a reader of the tail only": [*THREE, *read("tail", ABC[2:], start=None), *read("final", ABC, end=3)],
    "a trimmed head": [*THREE, Trim("admin", "orders", 0, 2), *read("final", ABC[2:], start=0, end=3)],
    "a trimmed head, read from the new start": [
        *THREE, *read("early", ABC), Trim("admin", "orders", 0, 2), *read("final", ABC[2:], start=2, end=3),
    ],
}  # fmt: skip


@pytest.mark.parametrize("story", ALLOWED)
def test_what_nobody_forbade_is_valid(story: str) -> None:
    verdict = check(ALLOWED[story])
    assert (verdict.result, verdict.findings, verdict.reasons) == (Result.VALID, (), ())


OPEN = {
    "nothing happened": ([], [Doubt.NO_ACKED_SEND]),
    "nothing was acked": ([*send("a", UNKNOWN), *read("final", ABC[:1], end=1)], [Doubt.NO_ACKED_SEND]),
    "nobody read to the end": ([*THREE, *read("early", ABC)], [Doubt.NO_FINAL_READ]),
    "nobody read from the beginning": (
        [*THREE, *read("tail", ABC[1:], start=1, end=3)],
        [Doubt.NO_FINAL_READ, Doubt.UNSEEN],
    ),
    "acked above the highest read": ([*THREE, *read("early", ABC[:2])], [Doubt.NO_FINAL_READ, Doubt.UNSEEN]),
    "a repeat was read, and what was acked not yet": (
        [*send("a", OK, 1, None), *read("early", ABC[:1])],
        [Doubt.NO_FINAL_READ],
    ),
    "acked after the final read": ([*HONEST, *send("d", OK, 3)], [Doubt.UNSEEN]),
    "acked and read after the final read": (
        [*HONEST, *send("d", OK, 3), *read("late", [(3, "d")], start=3)],
        [Doubt.NO_FINAL_READ],
    ),
    "events were not recorded": ([*HONEST, Unrecorded("writer", "disk full")], [Doubt.INCOMPLETE]),
    "an answer to nothing": ([Settle("writer", "orders", 0, "a", OK, 0), *HONEST[2:]], [Doubt.INCOMPLETE]),
    "a poll of nowhere": ([*HONEST, Poll("x", 9, "orders", 0, ((0, "a"),))], [Doubt.INCOMPLETE]),
}


@pytest.mark.parametrize("story", OPEN)
def test_a_history_that_proves_nothing_is_unknown(story: str) -> None:
    history, doubts = OPEN[story]
    verdict = check(history)
    assert verdict.result is Result.UNKNOWN
    assert sorted(verdict.doubts) == sorted(doubts)


def test_a_violation_outweighs_every_doubt() -> None:
    verdict = check([*THREE, *read("early", [(0, "a"), (2, "c")]), Unrecorded("writer", "killed")])
    assert verdict.result is Result.INVALID
    assert verdict.doubts


def test_a_finding_says_what_and_where() -> None:
    """Topic, partition, offset, value and events are there for programs, and in one sentence for people."""
    history = [*THREE, *read("final", [(0, "a"), (2, "c")], end=3)]
    (finding,) = check(history).findings
    assert (finding.topic, finding.partition, finding.offset, finding.value) == ("orders", 0, 1, "b")
    assert [history[number - 1] for number in finding.events[:2]] == send("b", OK, 1)
    assert finding.sentence == (
        "orders/0: b, acknowledged at offset 1, was read by nobody, though a reader passed its offset (events 3, 4, 7)"
    )


def test_a_flood_of_findings_is_counted_but_not_kept() -> None:
    lost = [event for n in range(1000) for event in send(f"v{n}", OK, n)]
    verdict = check([*lost, *read("final", end=0)], findings_max=5)
    assert verdict.violations == {Violation.LOST: 1000}
    assert len(verdict.findings) == 5
