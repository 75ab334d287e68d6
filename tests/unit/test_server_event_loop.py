"""The broker's loop with real sockets."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from penstock.config.broker import BrokerConfig
from penstock.queue.node import Node
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.disk import RealDisk
from penstock.queue.server.event_loop import Loop
from penstock.queue.server.sync_pool import SyncPool

ASK_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
ROUNDS = 200
DEADLINE_S = 60.0


HTTP_MAX = 2

Address = tuple[str, int]


@pytest.fixture
def addresses(tmp_path: Path) -> Iterator[tuple[Address, Address]]:
    """Where a loop listens to clients of the queue, and to those of HTTP; it runs in a thread."""
    config, clock, disk = BrokerConfig(http_connections_max=HTTP_MAX), SteadyClock(), RealDisk(str(tmp_path))
    node = Node(disk, config, ("127.0.0.1", 9092), uuid4, clock.now_ms())
    loop = Loop(node, config, clock, SyncPool(disk, config))
    listener, http = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    loop.listen(listener)
    loop.listen(http, http=True)
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    loop.wake_on(reader.fileno())
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield listener.getsockname(), http.getsockname()
    loop.stop()
    writer.send(b"!")
    thread.join(DEADLINE_S)
    for sock in (reader, writer):
        sock.close()
    assert not thread.is_alive()


def answer(client: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))
    return client.recv(size, socket.MSG_WAITALL)


def test_who_speaks_in_the_moment_it_is_accepted_is_heard(addresses: tuple[Address, Address]) -> None:
    """Its first frame may be there before the node has been told of it, while others keep the loop busy."""
    address, _ = addresses
    with socket.create_connection(address, DEADLINE_S) as busy:
        for _ in range(ROUNDS):
            busy.sendall(ASK_VERSIONS)
            with socket.create_connection(address, DEADLINE_S) as newcomer:
                newcomer.sendall(ASK_VERSIONS)
                assert answer(newcomer)[:4] == answer(busy)[:4] == struct.pack(">i", 7)


def test_the_number_of_http_clients_is_bounded(
    addresses: tuple[Address, Address], capsys: pytest.CaptureFixture[str]
) -> None:
    """One too many is closed at once, and the log names the setting; those before it make room for the next."""
    _, http = addresses
    with ExitStack() as crowd:
        *taken, refused = [crowd.enter_context(socket.create_connection(http, DEADLINE_S)) for _ in range(HTTP_MAX + 1)]
        assert refused.recv(1) == b""
        assert crowd.enter_context(socket.create_connection(http, DEADLINE_S)).recv(1) == b""
        assert [get_health(client) for client in taken] == [b"HTTP/1.1 200 OK"] * HTTP_MAX
        assert get_health(crowd.enter_context(socket.create_connection(http, DEADLINE_S))) == b"HTTP/1.1 200 OK"
    assert capsys.readouterr().err.count("http_connections_max are open") == 1


def get_health(client: socket.socket) -> bytes:
    """The first line of the answer, once the broker has closed the connection."""
    client.sendall(b"GET /health HTTP/1.1\r\n\r\n")
    return b"".join(iter(lambda: client.recv(4096), b"")).split(b"\r\n", 1)[0]
