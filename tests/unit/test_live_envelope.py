"""The JSON a live client reads: the value verbatim, and where it came from."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from penstock.client.record import Record
from penstock.connectors.live.envelope import Body, Message, notice, record_message


def message(value: bytes | None, key: bytes | None = None, headers: list[tuple[str, bytes]] | None = None) -> Message:
    return record_message(Body(Record("t", 1, 7, 1_000, key, value, headers or [])), "t=0:1,1:8")


def envelope(value: bytes | None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(message(value, **more).json)
    return found


def event_data(sse: bytes) -> tuple[dict[str, str], str]:
    """The fields and the data of one server-sent event, read as the standard says."""
    fields: dict[str, str] = {}
    data = []
    assert sse.endswith(b"\n\n")
    for line in sse.decode().removesuffix("\n\n").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        else:
            fields[name] = value
    return fields, "\n".join(data)


def test_a_record_of_a_plain_producer_has_an_identity_and_a_time() -> None:
    """Its place in the queue, and the time the queue knows."""
    assert envelope(b'{"a": 1}') == {
        "topic": "t", "partition": 1, "offset": 7, "id": "t/1/7", "time_ms": 1_000, "stored_ms": 1_000, "key": None,
        "resume": "t=0:1,1:8", "value": {"a": 1},
    }  # fmt: skip


def test_a_result_carries_the_identity_and_time_of_its_event() -> None:
    """And says which event and which query it came from."""
    headers = [
        ("penstock-id", "é1".encode()), ("penstock-time", b"900"),
        ("penstock-source", b"in/0/3"), ("penstock-query", b"decide"),
    ]  # fmt: skip
    found = envelope(b"1", key=b"card", headers=headers)
    assert (found["id"], found["time_ms"], found["stored_ms"], found["key"]) == ("é1", 900, 1_000, "card")
    assert (found["source"], found["query"]) == ("in/0/3", "decide")


def test_headers_that_make_no_sense_are_not_believed() -> None:
    """Any producer can write them."""
    found = envelope(b"1", headers=[("penstock-time", b"soon"), ("penstock-id", b"\xff")])
    assert found["time_ms"] == 1_000
    assert found["id"] == "�"


@pytest.mark.parametrize(
    "value", [b"null", b"1e3", b' {"b":  [1.0, 2]} ', b'{"a":1,"a":2}', b"12345678901234567890123"]
)
def test_json_is_passed_on_verbatim(value: bytes) -> None:
    """Not one byte of it is written anew: numbers keep their digits, repeated names stay."""
    assert message(value).json.endswith(b'"value":' + value + b"}")


@pytest.mark.parametrize(
    "value", [b"", b"{", b"nothing", b"1 2", b"NaN", b'{"a":1}}', b'"\n"', b"[" * 100_000, b'"\\ud800"', b"'a'"]
)
def test_text_that_is_no_json_is_passed_on_as_text(value: bytes) -> None:
    found = envelope(value)
    assert found["text"] == value.decode()
    assert "value" not in found


def test_bytes_that_are_no_text_are_passed_on_as_base64() -> None:
    found = envelope(b"\xff\x00")
    assert base64.b64decode(found["base64"]) == b"\xff\x00"


def test_a_record_without_a_value_has_the_value_null() -> None:
    assert envelope(None)["value"] is None


def test_lines_inside_the_json_do_not_break_the_event() -> None:
    """White space of a value may be line ends of any kind: a reader of events gets the same JSON."""
    sent = message(b'{"a":\r\n1,\r"b":\n\n2}')
    fields, data = event_data(sent.sse)
    assert fields == {"id": "t=0:1,1:8", "event": "t"}
    assert json.loads(data) == json.loads(sent.json)


@given(st.binary(max_size=40), st.none() | st.binary(max_size=10))
def test_whatever_a_record_holds_the_event_is_one_event(value: bytes, key: bytes | None) -> None:
    """One event with readable JSON, as SSE and as the text of a WebSocket."""
    sent = message(value, key)
    fields, data = event_data(sent.sse)
    assert set(fields) == {"id", "event"}
    assert json.loads(data) == json.loads(sent.text)
    assert b"\n\n" not in sent.sse.removesuffix(b"\n\n")


def test_a_notice_has_a_name_that_no_topic_can_have() -> None:
    """What begins with penstock. is ours; without a token it changes no client's position."""
    fields, data = event_data(notice("dropped", "", count=3).sse)
    assert fields == {"event": "penstock.dropped"}
    assert json.loads(data) == {"event": "penstock.dropped", "count": 3}


@pytest.mark.parametrize("size", [0, 1, 124, 125, 126, 127, 65_535, 65_536, 70_000])
def test_a_frame_is_what_the_websocket_library_would_write(size: int) -> None:
    """Every form of the length."""
    sent = Message("t", b"x" * size, "")
    assert sent.frame == Frame(Opcode.TEXT, sent.json).serialize(mask=False)


def test_a_chunk_holds_the_whole_event() -> None:
    """Its length in hexadecimal digits, then the event."""
    sent = message(b"x" * 300)
    length, _, rest = sent.chunk.partition(b"\r\n")
    assert rest == sent.sse + b"\r\n"
    assert int(length, 16) == len(sent.sse)
