"""Every HTTP error of a real edge is application/problem+json; EdgeStage.ask checks the form of each answer."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.config.edge import EdgeConfig
from penstock.connect.problem import problem
from penstock.edge.guard import Gate, Guard
from tests.edge.edge_stage import DEADLINE_S, Answer, EdgeStage, check_kind

NDJSON = "application/x-ndjson"
HOST = b"Host: localhost\r\n"
LATE_BODY = b"POST /ingest/purchases HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\nContent-Type: application/"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    built = EdgeStage(tmp_path_factory.mktemp("strict"), request_deadline_ms=1_000, connections_max=3)
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()


def raw(stage: EdgeStage, request: bytes) -> Answer:
    """The answer to bytes that no HTTP library sends."""
    with socket.create_connection(("127.0.0.1", stage.port), timeout=DEADLINE_S) as client:
        client.sendall(request)
        said = b""
        while more := client.recv(65536):
            said += more
    head, _, body = said.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    assert int(headers["content-length"]) == len(body)
    return Answer(int(status.split()[1]), json.loads(body), headers)


@pytest.mark.parametrize(
    ("method", "path", "status", "title", "field"),
    [
        ("GET", "/nowhere", 404, "Not Found", "error"),
        ("GET", "/static/nothing.js", 404, "Not Found", "error"),
        ("POST", "/metrics", 405, "Method Not Allowed", "error"),
        ("DELETE", "/results/decide/x", 405, "Method Not Allowed", "error"),
        ("GET", "/results/nobody/x", 404, "Not Found", "known"),
        ("GET", "/results/decide/x?since=soon", 400, "Bad Request", "error"),
        ("GET", "/results/decide/x?since=1", 404, "Not Found", "reason"),
        ("GET", "/live/nothing", 404, "Not Found", "error"),
        ("POST", "/live/nothing", 405, "Method Not Allowed", "error"),
        ("POST", "/ingest/nothing", 404, "Not Found", "known"),
        ("GET", "/ingest/purchases", 405, "Method Not Allowed", "error"),
        ("POST", "/ingest/purchases?wiat=decide", 400, "Bad Request", "error"),
        ("POST", "/ingest/purchases", 400, "Bad Request", "event"),
    ],
)
def test_the_error_of_each_route_is_a_problem(
    shop: EdgeStage, method: str, path: str, status: int, title: str, field: str
) -> None:
    answer = shop.ask(method, path, b"[]" if method == "POST" else None)
    assert (answer.status, answer.json["title"]) == (status, title)
    assert field in answer.json
    if status == 405:
        assert answer.json["detail"].endswith(f"not {method}") or "use GET" in answer.json["detail"]


def test_the_host_and_the_origin_are_refused_with_a_problem(shop: EdgeStage) -> None:
    assert shop.get("/", Host="evil.example").json["title"] == "Misdirected Request"
    assert shop.get("/", Origin="http://evil.example").json["title"] == "Forbidden"


def test_lines_without_an_event_are_a_problem_and_some_bad_lines_are_not(shop: EdgeStage) -> None:
    """207 is a success for some lines: application/json."""
    bad = shop.post("/ingest/purchases", b"nonsense\n", Content_Type=NDJSON)
    assert (bad.status, bad.json["refused"], bad.json["faults"][0]["line"]) == (400, 1, 1)
    some = shop.post("/ingest/purchases", b'nonsense\n{"id":"some"}\n', Content_Type=NDJSON)
    assert (some.status, some.headers["content-type"]) == (207, "application/json")
    assert "status" not in some.json


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + HOST + b"X-Late: ", 408),
        (LATE_BODY + b"json\r\n\r\n{", 408),
        (LATE_BODY + b"x-ndjson\r\n\r\n{", 408),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /live/nothing HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
         b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", 404),
    ],
    ids=["late head", "late body", "late line", "no HTTP", "WebSocket"],
)  # fmt: skip
def test_an_error_below_the_routes_is_a_problem(strict: EdgeStage, request_bytes: bytes, status: int) -> None:
    answer = raw(strict, request_bytes)
    assert answer.status == status
    check_kind(answer)


def test_a_refused_connection_is_told_with_a_problem(strict: EdgeStage) -> None:
    held = [socket.create_connection(("127.0.0.1", strict.port), timeout=DEADLINE_S) for _ in range(3)]
    answer = raw(strict, b"")
    assert answer.status == 503
    check_kind(answer)
    for client in held:
        client.close()


@pytest.mark.parametrize("is_started", [False, True])
def test_a_route_that_fails_is_a_problem_and_is_raised_for_the_log(is_started: bool) -> None:
    """After the head of a response there is no second one."""
    sent: list[Any] = []

    async def failing(scope: Any, receive: Any, send: Any) -> None:
        if is_started:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("planted")

    async def send(message: Any) -> None:
        sent.append(message)

    guard = Guard(failing, Gate(EdgeConfig(), "127.0.0.1"))
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": [(b"host", b"localhost")]}
    with pytest.raises(RuntimeError, match="planted"):
        asyncio.run(guard(scope, None, send))
    if is_started:
        assert len(sent) == 1
        return
    start, body = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    check_kind(Answer(start["status"], json.loads(body["body"]), headers))
    assert start["status"] == 500


def test_a_problem_has_the_phrase_of_its_status_and_keeps_other_members() -> None:
    body = json.loads(problem(413, "too large", event=3))
    assert body == {
        "type": "about:blank", "title": "Content Too Large", "status": 413, "detail": "too large",
        "error": "too large", "event": 3,
    }  # fmt: skip
