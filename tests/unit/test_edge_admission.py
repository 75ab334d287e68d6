"""What an event is, what is read from it, and what an edge adds; without any socket."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
import pytest

from penstock.app import App
from penstock.connectors.http.bodies import BadBodyError, read_events
from penstock.edge.admission import Admission, RefusedError
from penstock.edge.event_counters import Latency
from penstock.edge.memory_budget import MemoryBudget
from penstock.edge.results.rules import not_yet, with_result
from penstock.events.formats import Form, form_of
from penstock.events.identity import Stamps, new_ids
from penstock.guarantee import Queue
from penstock.plan.planner import plan_app

NOW_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
SCHEMA = "id STRING, n INT, `odd name` STRING, at TIMESTAMP, `class` STRING"


def admission(**more: Any) -> Admission:
    app = App("shop")
    app.topic("t", **{"schema": SCHEMA, **more})
    return Admission(plan_app(app, Queue()).topics["t"], 1_000)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("id", b'{"id":"x"}', b"x"),
        ("id", b'{"id":null}', None),
        ("id", b"{}", None),
        ("n", b'{"n":7}', b"7"),
        ("odd name", b'{"odd name":"y"}', b"y"),
        ("class", b'{"class":"z"}', b"z"),
        (("id", "n"), b'{"id":"x","n":1}', b"x|1"),
        (("id", "n"), b'{"n":1}', rb"\N|1"),
        (("id", "n"), b'{"id":"","n":1}', b"|1"),
        (("id", "odd name"), rb'{"id":"a|b","odd name":"c\\"}', rb"a\|b|c\\"),
        (("id", "n"), b"{}", None),
        ("id", '{"id":"ü"}'.encode(), "ü".encode()),
    ],
)
def test_the_key_is_the_text_of_its_columns(key: Any, value: bytes, expected: bytes | None) -> None:
    assert admission(key=key).admit(value, NOW_MS) == (expected, None)


def test_the_identity_of_several_columns_is_joined_and_none_may_lack() -> None:
    assert admission(identity=("id", "n")).admit(b'{"id":"a","n":2}', NOW_MS) == (None, "a|2")
    with pytest.raises(RefusedError, match="field n is missing"):
        admission(identity=("id", "n")).admit(b'{"id":"a"}', NOW_MS)
    with pytest.raises(RefusedError, match="field id: an id must not be empty"):
        admission(identity="id").admit(b'{"id":""}', NOW_MS)


def test_identities_of_several_columns_differ_wherever_the_columns_do() -> None:
    """A bar or a backslash inside a column is no joint; one column alone stays as it is."""
    pair = admission(identity=("id", "class"))
    texts = ["", "a", "|", "\\", "a|", "|a", "\\|", "|\\", "a\\", "\\\\"]
    events = [msgspec.json.encode({"id": id, "class": other}) for id in texts for other in texts]
    assert len({pair.admit(event, NOW_MS)[1] for event in events}) == len(events)
    assert pair.admit(b'{"id":"a|b","class":"c"}', NOW_MS)[1] == "a\\|b|c"
    assert admission(identity="id").admit(b'{"id":"a|b"}', NOW_MS)[1] == "a|b"


@pytest.mark.parametrize(
    ("at", "admitted"),
    [
        ("2023-11-14T23:13:20Z", True), ("2023-11-14T23:13:21Z", False), ("2023-11-15T00:13:20+01:00", True),
        ("2023-11-15T00:13:21+01:00", False), ("2023-11-14T23:13:20", True), ("2023-11-14T23:13:21", False),
        ("2099-01-01T00:00:00Z", False), ("9999-12-31T23:59:59-12:00", False), ("0001-01-01T00:00:00+12:00", True),
        (None, True),
    ],
)  # fmt: skip
def test_an_event_from_more_than_an_hour_ahead_is_refused(at: str | None, admitted: bool) -> None:
    """One of 2099 would move a watermark for good. A time without a zone is UTC."""
    value = msgspec.json.encode({"id": "x", "at": at})
    timed = admission(event_time="at")
    if admitted:
        timed.admit(value, NOW_MS)
    else:
        with pytest.raises(RefusedError, match=r"^field at: more than an hour in the future"):
            timed.admit(value, NOW_MS)
    timed.admit(b"{}", NOW_MS)
    admission().admit(value, NOW_MS)


def test_without_a_schema_an_event_is_any_object() -> None:
    free = admission(schema=None, key="k")
    assert free.admit(b'{"k":[1,"a"]}', NOW_MS) == (b'[1,"a"]', None)
    assert free.admit(b"{}", NOW_MS) == (None, None)
    for bad in (b"[]", b"7", b"", b'{"k":', b'{"k":"\xff"}', b'{"k":' + b"[" * 900):
        with pytest.raises(RefusedError):
            free.admit(bad, NOW_MS)


def test_an_event_has_a_size() -> None:
    with pytest.raises(RefusedError, match="at most 1000 bytes, this one has 1001"):
        admission().admit(b"{" + b" " * 999 + b"}", NOW_MS)


def test_new_ids_are_uuids_of_version_7_each_its_own_in_the_order_of_time() -> None:
    chance = bytes(range(200))
    ids = new_ids(20, 1_700_000_000_000, chance)
    assert len(set(ids)) == 20
    for id in ids:
        assert uuid.UUID(id).version == 7
        assert uuid.UUID(id).variant == uuid.RFC_4122
        assert int(id.replace("-", "")[:12], 16) == 1_700_000_000_000
    assert max(ids) < min(new_ids(20, 1_700_000_000_001, chance))


def test_each_event_of_a_topic_has_the_next_number() -> None:
    stamps = Stamps("edge-1")
    first = stamps.headers("t", ["a", "b", "c"], 5)
    assert [dict(headers)["penstock-sequence"] for headers in first] == [b"0", b"1", b"2"]
    (again,) = stamps.headers("t", ["c"], 6)
    assert again == [
        ("penstock-id", b"c"), ("penstock-producer", b"edge-1"), ("penstock-sequence", b"3"), ("penstock-time", b"6")
    ]  # fmt: skip
    (other,) = stamps.headers("u", ["c"], 6)
    assert dict(other)["penstock-sequence"] == b"0"


@pytest.mark.parametrize(
    ("content_type", "ce", "form"),
    [
        ("application/json", False, Form.JSON),
        ("Application/JSON; charset=UTF-8", False, Form.JSON),
        ("application/vnd.shop+json", False, Form.JSON),
        ("application/json", True, Form.CE_BINARY),
        ("", True, Form.CE_BINARY),
        ("application/cloudevents+json; charset=utf-8", False, Form.CE_STRUCTURED),
        ("application/cloudevents-batch+json", False, Form.CE_BATCH),
        ("application/x-ndjson", False, Form.LINES),
        ("application/jsonl", False, Form.LINES),
        ("", False, None),
        ("text/plain", False, None),
        ("text/xml", True, None),
        ('application/json; charset="latin-1"', False, None),
    ],
)
def test_the_form_is_told_by_the_content_type(content_type: str, ce: bool, form: Form | None) -> None:
    assert form_of(content_type, ce) is form


def test_the_bytes_of_each_event_of_an_array_stay_as_they_were() -> None:
    events, is_list = read_events(Form.JSON, b' [ {"a": 1.50},\n{"b":"\\u00fc"} ] ', [], 10)
    assert is_list
    assert [event.value for event in events] == [b'{"a": 1.50}', b'{"b":"\\u00fc"}']


def test_a_given_id_is_checked() -> None:
    for bad in (b"", b"x" * 2000, b"a\x01", b"\xff"):
        with pytest.raises(BadBodyError, match="Penstock-Id"):
            read_events(Form.JSON, b"{}", [(b"penstock-id", bad)], 10)


def test_a_room_bounds_what_is_under_way_and_one_always_fits() -> None:
    room = MemoryBudget(100)
    assert room.take(500)
    assert not room.take(1)
    room.give(500)
    assert room.take(60)
    assert not room.take(41)
    assert room.take(40)
    room.give(100)
    assert room.taken == 0


def test_times_are_counted_in_buckets_with_least_and_most() -> None:
    latency = Latency()
    for ms in (0.5, 3, 40_000):
        latency.add(ms)
    lines = list(latency.lines("x", "help"))
    assert 'x_seconds_bucket{le="0.001"} 1' in lines
    assert 'x_seconds_bucket{le="0.005"} 2' in lines
    assert 'x_seconds_bucket{le="+Inf"} 3' in lines
    assert "x_min_seconds 0.000500" in lines
    assert "x_max_seconds 40.000000" in lines


def test_a_result_that_is_no_json_is_shown_as_text_and_an_id_cannot_break_out_of_an_answer() -> None:
    assert with_result('a"b', b"{").body == b'{"id":"a\\"b","result":"{"}'
    where = dict(not_yet("a/b\r\nx: y", "decide", 5).headers)[b"location"]
    assert where == b"/results/decide/a%2Fb%0D%0Ax%3A%20y?since=5"
