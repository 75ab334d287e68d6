"""POST /ingest by real clients: what is stored, what is answered, and that bad input changes nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from penstock.client.record import Record
from tests.edge.edge_stage import EdgeStage

UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def by_id(records: list[Record]) -> dict[str, Record]:
    return {(record.header("penstock-id") or b"").decode(): record for record in records}


def test_curl_hears_202_and_the_event_is_in_the_queue_as_it_was_sent(
    shop: EdgeStage, need_tool: Callable[[str], str]
) -> None:
    """Bytes untouched, the key from its column, identity as id, and who counted it when."""
    sent = '{ "id": "curl-1", "card":"4111", "amount": 1.50, "more": [1, 2] }'
    command = [need_tool("curl"), "-sS", "--json", sent, f"{shop.url}/ingest/purchases"]
    said = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    assert json.loads(said) == {"ids": ["curl-1"]}
    record = by_id(shop.stored("purchases"))["curl-1"]
    assert record.value == sent.encode()
    assert record.key == b"4111"
    headers = dict(record.headers)
    assert UUID7.fullmatch(headers["penstock-producer"].decode())
    assert headers["penstock-sequence"].isdigit()
    assert abs(int(headers["penstock-time"]) - record.timestamp_ms) < 60_000


def test_an_event_without_identity_gets_the_id_that_was_given_or_a_new_one(shop: EdgeStage) -> None:
    given = shop.post("/ingest/shop/notes", {"text": "a"}, Penstock_Id="note/1")
    assert given.json == {"ids": ["note/1"]}
    (new,) = shop.post("/ingest/shop/notes", {"text": "b"}).json["ids"]
    assert UUID7.fullmatch(new)
    assert {"note/1", new} <= by_id(shop.stored("notes")).keys()


def test_the_numbers_of_one_edge_have_no_gap(shop: EdgeStage) -> None:
    """A gap in penstock-sequence would be a loss; refused events take no number."""
    for number in range(5):
        shop.post("/ingest/fleeting", {"n": number})
        shop.post("/ingest/fleeting", {"n": "refused"})
    numbers = sorted(int(record.header("penstock-sequence") or -1) for record in shop.stored("fleeting", 1))
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 5


def test_an_array_is_stored_whole(shop: EdgeStage) -> None:
    events = [{"id": f"array-{number}", "card": str(number)} for number in range(50)]
    answer = shop.post("/ingest/purchases", events)
    assert answer.status == 202
    assert answer.json["ids"] == [event["id"] for event in events]
    assert set(answer.json["ids"]) <= by_id(shop.stored("purchases")).keys()


def test_an_array_with_one_bad_event_is_refused_whole(shop: EdgeStage) -> None:
    """The answer names the event and the field; nothing of the array is stored."""
    answer = shop.post("/ingest/purchases", [{"id": "half-1"}, {"id": "half-2", "amount": "much"}])
    assert answer.status == 400
    assert answer.json["event"] == 1
    assert answer.json["field"] == "amount"
    assert "stored" not in answer.json
    assert not {"half-1", "half-2"} & by_id(shop.stored("purchases")).keys()


def test_an_event_of_the_far_future_is_refused_with_the_name_of_its_field(shop: EdgeStage) -> None:
    answer = shop.post("/ingest/purchases", {"id": "far", "at": "2099-01-01T00:00:00Z"})
    assert (answer.status, answer.json["field"]) == (400, "at")
    lines = shop.post(
        "/ingest/purchases", b'{"id":"far","at":"2099-01-01T00:00:00Z"}\n', Content_Type="application/jsonl"
    )
    assert (lines.status, lines.json["refused"]) == (400, 1)


def test_a_topic_without_schema_takes_any_object_and_a_key_of_several_columns(shop: EdgeStage) -> None:
    (id,) = shop.post("/ingest/anything", {"a": "x", "b": 7, "deep": {"er": None}}).json["ids"]
    assert by_id(shop.stored("anything", 1))[id].key == b"x|7"
    assert shop.post("/ingest/anything", b'"text"').status == 400


BAD: dict[str, tuple[bytes, str]] = {
    "not JSON": (b'{"id": ', "not JSON"),
    "empty": (b"", "not JSON"),
    "an empty array": (b"[]", "no event"),
    "a number": (b"7", "expected object"),
    "a wrong type": (b'{"id":"b","amount":"x"}', "field amount"),
    "identity missing": (b'{"card":"1"}', "field id is missing"),
    "identity null": (b'{"id":null}', "field id is missing"),
    "identity with control characters": (b'{"id":"a\\u0000b"}', "field id"),
    "identity too long": (b'{"id":"%s"}' % (b"x" * 300), "field id"),
    "no UTF-8 in a known field": (b'{"id":"\xff"}', "UTF-8"),
    "no UTF-8 in an unknown field": (b'{"id":"b","other":"\xff\xfe"}', "UTF-8"),
    "nested without end": (b'{"id":"b","x":' + b"[" * 200_000, "nested"),
    "a time that is none": (b'{"id":"b","at":"yesterday"}', "field at"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_with_its_reason_and_never_stored(shop: EdgeStage, name: str) -> None:
    body, reason = BAD[name]
    before = shop.metric('refused_total{reason="event"}')
    answer = shop.post("/ingest/purchases", body)
    assert answer.status == 400
    assert reason in answer.json["error"]
    assert shop.metric('refused_total{reason="event"}') == before + 1
    assert "b" not in by_id(shop.stored("purchases"))


def test_an_event_larger_than_the_edge_takes_is_413(shop: EdgeStage) -> None:
    answer = shop.post("/ingest/purchases", [{"id": "a"}, {"id": "b", "pad": "x" * 1_000_000}])
    assert (answer.status, answer.json["event"]) == (413, 1)
    assert "at most 921600 bytes" in answer.json["error"]


def test_a_required_field_is_named_when_it_is_missing(shop: EdgeStage) -> None:
    answer = shop.post("/ingest/shop/notes", {"stars": 5})
    assert (answer.status, answer.json["field"]) == (400, "text")


@pytest.mark.parametrize(
    ("method", "path", "kind", "status", "says"),
    [
        ("POST", "/ingest/purchase", "application/json", 404, "/ingest/purchases"),
        ("POST", "/ingest/../purchases", "application/json", 404, "/ingest/purchases"),
        ("GET", "/ingest/purchases", None, 405, "POST"),
        ("PUT", "/ingest/purchases", "application/json", 405, "POST"),
        ("POST", "/ingest/purchases", "text/plain", 415, "application/json"),
        ("POST", "/ingest/purchases", "application/json; charset=utf-16", 415, "application/json"),
        ("POST", "/ingest/purchases", "application/x-www-form-urlencoded", 415, "application/json"),
        ("POST", "/nowhere", "application/json", 404, ""),
    ],
)
def test_the_wrong_door_says_which_is_right(
    shop: EdgeStage, method: str, path: str, kind: str | None, status: int, says: str
) -> None:
    body: Any = None if kind is None else {"id": "door"}
    answer = shop.ask(method, path, body, {"Content-Type": kind} if kind else {})
    assert answer.status == status
    assert says in json.dumps(answer.json)


def test_a_compressed_body_is_refused_since_it_could_be_a_bomb(shop: EdgeStage) -> None:
    assert shop.post("/ingest/purchases", {"id": "z"}, Content_Encoding="gzip").status == 415


def test_a_body_larger_than_the_bound_is_refused_before_it_is_read_whole(shop: EdgeStage) -> None:
    try:
        answer = shop.post("/ingest/purchases", b"[" + b" " * (17 * 1024 * 1024) + b"]")
    except ConnectionError:
        return  # closed while it was still being sent: the answer may be lost to such a client
    assert answer.status == 413
    assert "NDJSON" in answer.json["error"]


def test_an_array_of_too_many_events_is_refused(shop: EdgeStage) -> None:
    answer = shop.post("/ingest/purchases", [{"id": "x"}] * 10_001)
    assert answer.status == 413
    assert "10000" in answer.json["error"]


def test_every_metric_says_what_it_is(shop: EdgeStage) -> None:
    """Bytes are counted with the events they are of."""
    counted = shop.metric('accepted_bytes_total{topic="anything"}')
    assert shop.post("/ingest/anything", b'{"counted":1}').status == 202
    assert shop.metric('accepted_bytes_total{topic="anything"}') == counted + len(b'{"counted":1}')
    lines = shop.get("/metrics").json.splitlines()
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert "penstock_edge_live_clients" in typed
    assert typed == [line.split()[2] for line in lines if line.startswith("# HELP ")]
