"""Records as text: whatever bytes a producer sent, one record is one harmless line."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.produce import Failures, given_records
from penstock.cli.shared.group_offsets import TAIL_MAX, Standing, group_fault, short_ids
from penstock.cli.shared.output import count, print_table
from penstock.cli.shared.record_text import as_json, as_line, escaped, iso_time, json_bytes
from penstock.cli.shared.start_offsets import parse_from
from penstock.cli.transactions import ended_text
from penstock.client.record import Record
from penstock.client.transactions import Ending

RECORD = Record("t", 1, 42, 1_700_000_000_123, b"k", b"v", [("h", b"1"), ("h", None)])


@given(st.binary(max_size=200))
def test_any_bytes_become_one_printable_line(data: bytes) -> None:
    """No value ends the line, moves the cursor or turns the text around."""
    text = escaped(data)
    assert text.isprintable() or not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in text)
    assert len(text.splitlines()) <= 1
    text.encode("utf-8")


@given(st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=50))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """In every language."""
    assert escaped(text.encode()) == text


def test_escapes_are_the_ones_people_know() -> None:
    """And a record without a value is told from an empty one."""
    assert escaped(b"a\nb\t\x1b[31m\xff") == "a\\nb\\t\\x1b[31m\\xff"
    assert escaped(b"a\tb", keep_tabs=True) == "a\tb"
    assert (escaped(None), escaped(b"")) == ("null", "")


@given(st.binary(max_size=200))
def test_json_gives_the_exact_bytes_back(data: bytes) -> None:
    """Text as text, the rest as base64 with a marker that no text can look like."""
    told = json.loads(json.dumps(json_bytes(data)))
    assert (told.encode() if isinstance(told, str) else base64.b64decode(told["base64"])) == data


def test_a_line_shows_what_was_asked_for_in_a_fixed_order() -> None:
    """Whatever the order of asking."""
    assert as_line(RECORD, []) == "v"
    shown = ["headers", "offset", "key", "timestamp", "partition"]
    assert as_line(RECORD, shown) == "1\t42\t2023-11-14T22:13:20.123Z\tk\th=1,h=null\tv"


def test_json_holds_the_whole_record() -> None:
    """These names are for years."""
    assert as_json(RECORD) == {
        "topic": "t", "partition": 1, "offset": 42,
        "timestamp": "2023-11-14T22:13:20.123Z", "timestamp_ms": 1_700_000_000_123,
        "key": "k", "value": "v",
        "headers": [{"name": "h", "value": "1"}, {"name": "h", "value": None}],
    }  # fmt: skip


@pytest.mark.parametrize("claimed", [None, 2**62, -(2**62)])
def test_an_absurd_time_is_no_failure(claimed: int | None) -> None:
    """A producer may claim any number."""
    assert iso_time(claimed) is None
    as_line(RECORD._replace(timestamp_ms=claimed), ["timestamp"])


def test_a_beginning_is_a_word_an_offset_or_a_time() -> None:
    """A time without a zone is this machine's."""
    assert parse_from("beginning") == parse_from("earliest") == "beginning"
    assert parse_from("end") == parse_from("latest") == parse_from("now") == "end"
    assert (parse_from("42"), parse_from("-5")) == (42, -5)
    assert parse_from("2026-11-16T12:00:00Z") == datetime(2026, 11, 16, 12, tzinfo=UTC)
    local = parse_from("2026-11-16")
    assert isinstance(local, datetime)
    assert local.tzinfo is not None
    for wrong in ("", "-", "yesterday", "1.5", "2026-13-01"):
        with pytest.raises(ValueError, match="none of beginning, earliest, end, latest, now"):
            parse_from(wrong)


def test_a_line_without_its_separator_is_not_sent() -> None:
    """And is named; the value may hold the separator again."""
    good, bad = given_records(("k:v:w", "none"), None, ":")
    assert (good.key, good.value, good.fault) == (b"k", b"v:w", None)
    assert (bad.number, bad.fault) == (2, "it has no ':' between key and value")


def test_failures_that_follow_each_other_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """In whatever order the queue told of them; each of another reason stands alone."""
    failures = Failures("line")
    for number in (3, 1, 2, 7):
        failures.add(number, "nobody answers", 100.0)
    failures.add(5, "too large", 100.5)
    failures.tell_due(100.9)
    assert not capsys.readouterr().err
    failures.tell_due(101.0)
    failures.tell()
    assert capsys.readouterr().err.splitlines() == [
        "penstock: lines 1 to 3 were not acknowledged: nobody answers.",
        "penstock: line 7 was not acknowledged: nobody answers.",
        "penstock: line 5 was not acknowledged: too large.",
    ]


def test_columns_stand_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers to the right, no spaces at the end."""
    print_table(("NAME", "N"), [("long name", 1), ("x", 100)])
    assert capsys.readouterr().out == "NAME         N\nlong name    1\nx          100\n"
    assert (count(1, "place"), count(0, "place")) == ("1 place", "0 places")


@pytest.mark.parametrize(
    ("state", "ending", "words"),
    [
        ("Ongoing", Ending.ABORT, "aborted payer"),
        ("Empty", Ending.ABORT, "aborted payer"),
        ("Ongoing", Ending.COMMIT, "payer was committed, not aborted"),
        ("PrepareCommit", Ending.COMMIT, "payer was committed, not aborted"),
        ("PrepareCommit", Ending.NONE, "payer has ended by itself (PrepareCommit)"),
        ("Ongoing", Ending.NONE, "payer had ended before it could be aborted"),
        ("Empty", Ending.NONE, "payer had nothing open (Empty)"),
    ],
)
def test_an_abort_is_claimed_only_if_it_was_seen(state: str, ending: Ending, words: str) -> None:
    """Otherwise it says how the transaction ended, and that its owner is fenced."""
    told = ended_text("payer", state, ending)
    assert told.startswith(words)
    assert ending is Ending.ABORT or "fenced" in told


def test_ids_of_members_are_short_and_distinct() -> None:
    """A few letters of the UUID; more of them where those are the same."""
    one, two = "penstock-0f8fad5b-d9cb-469f-a165-70867728950e", "penstock-7c9e6679-7425-40de-944b-e07fc1f90ae7"
    assert list(short_ids([one, two]).values()) == ["penstock-0f8fad5b", "penstock-7c9e6679"]
    alike = [one, one[:-1] + "f"]
    assert list(short_ids(alike).values()) == alike
    assert short_ids(["a", "ab"]) == {"a": "a", "ab": "ab"}
    assert short_ids([]) == {}


def test_what_a_group_has_in_front_of_it() -> None:
    """From where it can read on; where it has no position, everything that is there, told apart."""
    found = [Standing("t", 0, committed, 40, 51, "") for committed in (45, 10, None)]
    assert [(part.lag, part.never_read) for part in found] == [(6, 0), (11, 0), (None, 11)]
    assert [part.tail for part in found] == [(45, 51), (40, 51), None]
    assert [part._replace(is_fully_read=True).lag for part in found] == [0, 0, None]
    assert Standing("t", 0, 51, 40, 51, "").tail is None
    assert Standing("t", 0, 0, 0, TAIL_MAX + 1, "").tail is None, "nobody reads that much for a number"


def test_a_refusal_about_a_group_is_in_our_words() -> None:
    """Members are named as the reason only where they are."""
    from confluent_kafka import KafkaError

    assert "g has members: stop them first" in str(group_fault(KafkaError(KafkaError.UNKNOWN_MEMBER_ID), "g"))
    full = str(group_fault(KafkaError(KafkaError.GROUP_MAX_SIZE_REACHED), "g"))
    assert "(groups_max)" in full
    assert "members" not in full
