"""Resume tokens and the other ways to say where to begin."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.live.position_token import Positions, decode_token, encode_token
from penstock.connectors.live.start_position import Start, parse_start

TOPICS = ("decisions", "a.b-c_D")
POSITIONS = st.dictionaries(
    st.tuples(st.sampled_from(TOPICS), st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1), min_size=1
)


@given(POSITIONS)
def test_a_token_reads_back_as_it_was_written(positions: Positions) -> None:
    """Whatever the offsets are, and it needs no escaping in an address, a header or an event."""
    token = encode_token(positions)
    assert decode_token(token, TOPICS) == positions
    assert not set(token) & set(' \r\n"\\&#%+?')


def test_a_token_can_be_read_by_a_person() -> None:
    """The next offset of each partition of each topic, in order."""
    assert encode_token({("b", 1): 7, ("b", 0): 5, ("a", 0): 2}) == "a=0:2;b=0:5,1:7"


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("", "looks like"),
        ("decisions", "looks like"),
        ("decisions=", "looks like"),
        ("decisions=0", "PARTITION:OFFSET"),
        ("decisions=0:1,", "PARTITION:OFFSET"),
        ("decisions=0:-1", "looks like"),
        ("decisions=0:1,0:2", "twice"),
        ("decisions=0:1;decisions=0:2", "twice"),
        ("decisions=4294967296:0", "PARTITION:OFFSET"),
        ("decisions=0:99999999999999999999", "PARTITION:OFFSET"),
        ("decisions=0:9999999999999999999", "PARTITION:OFFSET"),
        ("other=0:1", "not delivered here"),
        ("decisions=0:1\n", "looks like"),
        ("decisions=" + "0:1," * 20_000, "at most"),
    ],
)
def test_what_is_no_token_is_refused_with_a_reason(token: str, told: str) -> None:
    """Never an exception of another kind, never half believed."""
    with pytest.raises(ValueError, match=told):
        decode_token(token, TOPICS)


@given(st.text())
def test_any_text_is_a_token_or_a_reason(text: str) -> None:
    """Strangers may send anything."""
    try:
        positions = decode_token(text, TOPICS)
    except ValueError:
        return
    assert positions


def start(last_id: str | None = None, topics: tuple[str, ...] = ("decisions",), **query: str) -> Start:
    return parse_start(query, last_id, topics, topics)


def test_the_ways_to_begin() -> None:
    """Now by default, the beginning, offsets, a moment, or a token."""
    assert start() == start(**{"from": "now"}) == Start("now")
    assert start(**{"from": "beginning"}) == Start("beginning")
    assert start(**{"from": "earliest"}) == Start("beginning")
    assert start(**{"from": "end"}) == start(**{"from": "latest"}) == Start("now")
    assert start(**{"from": "0:12,3:4"}) == Start("now", {("decisions", 0): 12, ("decisions", 3): 4})
    assert start(**{"from": "-20"}) == Start(-20)
    assert start(**{"from": "-9999"}) == Start(-9999)
    assert start(**{"from": "1970-01-01T00:00:01Z"}) == Start(1000)
    assert start(**{"from": "1970-01-01T01:00:01 01:00"}) == Start(1000)
    assert start(after="decisions=0:5") == Start("beginning", {("decisions", 0): 5})


def test_the_header_of_a_browser_that_comes_back_wins() -> None:
    """It repeats the address that it began with, and that is where it was, not where it is."""
    came_back = start("decisions=0:9", after="decisions=0:5", **{"from": "beginning"})
    assert came_back == Start("beginning", {("decisions", 0): 9})


@pytest.mark.parametrize(
    "begin", ["yesterday", "0:", "12", "-10000", "2026-11-16T12:00:00", "0:1,x", "9999999-01-01T00:00:00Z"]
)
def test_a_start_that_means_nothing_is_refused(begin: str) -> None:
    """A time needs its zone: what is noon here is not noon there."""
    with pytest.raises(ValueError, match="0:124"):
        start(**{"from": begin})


def test_offsets_of_several_topics_need_a_token() -> None:
    with pytest.raises(ValueError, match="one topic"):
        start(topics=("a", "b"), **{"from": "0:1"})


def test_what_is_delivered_at_most_once_is_not_resumed() -> None:
    with pytest.raises(ValueError, match="at-most-once"):
        parse_start({"after": "decisions=0:1"}, None, ("decisions",), ())
