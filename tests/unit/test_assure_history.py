"""A history survives the way to a file and back, and damage to the file is never taken for an event."""

from __future__ import annotations

import pytest

from penstock.assure.history import (
    Assign,
    End,
    Event,
    HistoryError,
    Outcome,
    Poll,
    Send,
    Settle,
    Trim,
    Unrecorded,
    decode_event,
    decode_history,
    encode_event,
)

EVENTS: list[Event] = [
    Send("w", "orders", 0, "a", "p1"),
    Send("w", "orders", 0, "b"),
    Settle("w", "orders", 0, "a", Outcome.OK, 0),
    Settle("w", "orders", 0, "b", Outcome.UNKNOWN),
    Assign("r", 1, "orders", 0, 0),
    Assign("r", 2, "orders", 0),
    Poll("r", 1, "orders", 0, ((0, "a"), (1, "é\n"))),
    End("r", 1, "orders", 0, 2),
    Trim("admin", "orders", 0, 1),
    Unrecorded("w", "killed"),
]


def test_every_event_comes_back_from_its_line() -> None:
    lines = [encode_event(event) for event in EVENTS]
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    assert list(decode_history(lines)) == EVENTS


def test_a_line_is_readable_json() -> None:
    line = b'{"event":"end","process":"r","assignment":1,"topic":"orders","partition":0,"offset":2}\n'
    assert encode_event(EVENTS[7]) == line


def test_a_last_line_cut_short_is_a_gap_in_the_record() -> None:
    lines = [encode_event(event) for event in EVENTS[:2]]
    for length in range(1, len(lines[1]) - 1):
        *kept, last = decode_history([lines[0], lines[1][:length]])
        assert kept == EVENTS[:1]
        assert isinstance(last, Unrecorded)


@pytest.mark.parametrize(
    "lines",
    [
        [b"garbage\n"],
        [b"\n"],
        [b'{"event":"sned"}\n'],
        [b'{"event":"trim","process":"a","topic":"t","partition":0,"offset":-1}\n'],
        [b'{"event":"trim","process":"a","topic":"t","partition":0,"offset":1,"extra":1}\n'],
        [b'{"event":"tr', encode_event(EVENTS[0])],
    ],
)
def test_damage_is_refused_with_its_line(lines: list[bytes]) -> None:
    with pytest.raises(HistoryError, match="line 1 of the history"):
        list(decode_history(lines))


def test_a_single_bad_line_is_refused() -> None:
    with pytest.raises(HistoryError):
        decode_event(b"[]")
