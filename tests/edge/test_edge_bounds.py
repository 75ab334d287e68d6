"""What an edge does to clients that are slow, many or rude: deadlines and bounds, and the others go on."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterator

import pytest

from tests.edge.edge_stage import DEADLINE_S, EdgeStage

HEAD = b"POST /ingest/purchases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    built = EdgeStage(tmp_path_factory.mktemp("strict"), request_deadline_ms=1_000, connections_max=20)
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()


def everything(client: socket.socket) -> bytes:
    """What comes until the connection ends."""
    said = b""
    try:
        while more := client.recv(65536):
            said += more
    except ConnectionResetError:
        pass
    return said


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"POST /ingest/purchases HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        HEAD + b"Content-Length: 100\r\n\r\n" + b'{"id"',
        HEAD.replace(b"json", b"x-ndjson") + b'Transfer-Encoding: chunked\r\n\r\n12\r\n{"id":"loris-nd"}\n\r\n',
        HEAD.replace(b"POST", b"GET").replace(b"/ingest/purchases", b"/health") + b"Content-Length: 9\r\n\r\n",
    ],
    ids=["nothing sent", "in the head", "in the body", "between lines", "a body that nobody reads"],
)
def test_a_request_that_is_not_whole_at_the_deadline_is_ended(strict: EdgeStage, begun: bytes) -> None:
    """Slow loris: a byte now and then does not help; the deadline is for the whole request."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as client:
        client.sendall(begun)
        client.settimeout(0.1)
        said = b""
        while True:
            assert time.monotonic() - began < 20, said
            try:
                more = client.recv(65536)
            except TimeoutError:
                if begun and b"chunked" not in begun:
                    try:
                        client.send(b"x")
                    except OSError:
                        break
                continue
            except ConnectionResetError:
                break
            said += more
            if not more:
                break
    assert 0.9 < time.monotonic() - began < 20
    if b"/health" not in begun:
        assert said.startswith(b"HTTP/1.1 408"), said


def test_lines_accepted_before_the_deadline_are_told_with_the_408(strict: EdgeStage) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as client:
        line = b'{"id":"told-1"}\n'
        head = HEAD.replace(b"json", b"x-ndjson") + b"Transfer-Encoding: chunked\r\n\r\n"
        client.sendall(head + b"%x\r\n%s\r\n" % (len(line), line))
        said = everything(client)
    assert said.startswith(b"HTTP/1.1 408")
    assert b'"accepted":1' in said
    assert b"told-1" in {record.header("penstock-id") for record in strict.stored("purchases")}


@pytest.mark.parametrize(("pad", "status"), [(4_000, b"202"), (1, b"408")], ids=["enough", "too little"])
def test_a_stream_of_lines_may_last_longer_than_the_deadline_if_it_comes_on(
    strict: EdgeStage, pad: int, status: bytes
) -> None:
    """A line and 1 KiB a second in each deadline are enough; a small line now and then is not."""
    head = HEAD.replace(b"json", b"x-ndjson") + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    number, began = 0, time.monotonic()
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as client:
        client.sendall(head)
        while time.monotonic() - began < 4 and not select.select([client], [], [], 0.2)[0]:
            line = b'{"id":"lasts-%d-%d","pad":"%s"}\n' % (pad, number, b"x" * pad)
            client.sendall(b"%x\r\n%s\r\n" % (len(line), line))
            number += 1
        with contextlib.suppress(OSError):
            client.sendall(b"0\r\n\r\n" if status == b"202" else b"")
        said = everything(client)
    assert said.startswith(b"HTTP/1.1 " + status), said
    assert b'"accepted":%d,' % number in said


def test_a_head_without_end_is_refused(strict: EdgeStage) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as client:
        try:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 300_000)
            said = everything(client)
        except (BrokenPipeError, ConnectionResetError):
            return  # ended while we were still sending: the answer may be lost to such a client
    assert said == b"" or said.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"\x00" * 100],
)
def test_what_is_no_http_is_ended_at_once(strict: EdgeStage, garbage: bytes) -> None:
    """A TLS hello, nonsense: 400 or nothing, well before the deadline, and no traceback."""
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as client:
        client.sendall(garbage)
        said = everything(client)
    assert said == b"" or said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 408", b"HTTP/1.1 421"))
    assert b"Traceback" not in said


def test_connections_beyond_the_bound_are_refused_and_the_others_go_on(strict: EdgeStage) -> None:
    clients = [socket.create_connection(("127.0.0.1", strict.port), timeout=30) for _ in range(20)]
    with socket.create_connection(("127.0.0.1", strict.port), timeout=30) as late:
        said = everything(late)
        assert said.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in said
    clients[0].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert everything(clients[0]).startswith(b"HTTP/1.1 200")
    for client in clients:
        client.close()
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(ConnectionError):
            if strict.get("/health").status == 200:
                return
    pytest.fail("there was no room again")


def test_without_file_handles_clients_are_refused_and_the_others_go_on(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    poor = EdgeStage(tmp_path_factory.mktemp("poor"), handles=256)
    clients: list[socket.socket] = []
    try:
        first = socket.create_connection(("127.0.0.1", poor.port), timeout=30)
        clients = [socket.create_connection(("127.0.0.1", poor.port), timeout=30) for _ in range(400)]
        for client in clients[-100:]:
            assert everything(client).startswith(b"HTTP/1.1 503")
        first.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert everything(first).startswith(b"HTTP/1.1 200")
        first.close()
    finally:
        for client in clients:
            client.close()
        poor.close()
    assert "Traceback" not in poor.said
