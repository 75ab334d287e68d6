"""The broker's loop with real sockets."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from penstock.broker.node import Node
from penstock.config import BrokerConfig
from penstock.runtime.clock import SteadyClock
from penstock.runtime.disk import RealDisk
from penstock.runtime.loop import Loop
from penstock.runtime.syncing import SyncPool

ASK_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
ROUNDS = 200
DEADLINE_S = 60.0


@pytest.fixture
def address(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """Where a loop listens, which runs in a thread."""
    config, clock, disk = BrokerConfig(), SteadyClock(), RealDisk(str(tmp_path))
    node = Node(disk, config, ("127.0.0.1", 9092), uuid4, clock.now_ms())
    loop = Loop(node, config, clock, SyncPool(disk, 2, config.sync_inline_us_max))
    listener = socket.create_server(("127.0.0.1", 0))
    loop.listen(listener)
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    loop.wake_on(reader.fileno())
    thread = threading.Thread(target=loop.run)
    thread.start()
    yield listener.getsockname()
    loop.stop()
    writer.send(b"!")
    thread.join(DEADLINE_S)
    for sock in (reader, writer):
        sock.close()
    assert not thread.is_alive()


def answer(client: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))
    return client.recv(size, socket.MSG_WAITALL)


def test_who_speaks_in_the_moment_it_is_accepted_is_heard(address: tuple[str, int]) -> None:
    """Its first frame may be there before the node has been told of it, while others keep the loop busy."""
    with socket.create_connection(address, DEADLINE_S) as busy:
        for _ in range(ROUNDS):
            busy.sendall(ASK_VERSIONS)
            with socket.create_connection(address, DEADLINE_S) as newcomer:
                newcomer.sendall(ASK_VERSIONS)
                assert answer(newcomer)[:4] == answer(busy)[:4] == struct.pack(">i", 7)
