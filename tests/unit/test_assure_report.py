"""A verdict can be read by a person and by a program."""

from __future__ import annotations

import json

from penstock.assure.checker import check
from penstock.assure.history import Assign, End, Event, Outcome, Poll, Send, Settle
from penstock.assure.report import report_data, report_lines


def history(acked: int, read: int) -> list[Event]:
    events: list[Event] = []
    for offset in range(acked):
        value = f"v{offset}"
        events += [Send("w", "t", 0, value, "p"), Settle("w", "t", 0, value, Outcome.OK, offset)]
    records = tuple((offset, f"v{offset}") for offset in range(read))
    return [*events, Assign("r", 1, "t", 0, 0), Poll("r", 1, "t", 0, records), End("r", 1, "t", 0, read)]


def test_a_kept_promise_is_two_lines() -> None:
    first, second = report_lines(check(history(3, 3)))
    assert first == "verdict valid: every promise that was checked was kept"
    assert "3 writes (3 acked" in second


def test_broken_promises_are_named_with_a_few_examples() -> None:
    lines = report_lines(check(history(9, 2)))
    assert lines[0] == "verdict invalid: broken lost x7"
    assert len(lines) == 6
    assert lines[2].startswith("  lost: t/0: v2, acknowledged at offset 2, was read by nobody")
    assert lines[-1] == "  lost: and 4 more"


def test_an_unknown_verdict_says_why() -> None:
    lines = report_lines(check([]))
    assert lines[0] == "verdict unknown: not proved, no-acked-send"
    assert lines[2] == "  no-acked-send: no send was acknowledged, so nothing was promised"


def test_the_data_is_plain_json() -> None:
    data = json.loads(json.dumps(report_data(check(history(2, 1)))))
    assert data["result"] == "invalid"
    assert data["violations"] == {"lost": 1}
    assert data["findings"][0]["value"] == "v1"
    assert data["tally"]["acked"] == 2
