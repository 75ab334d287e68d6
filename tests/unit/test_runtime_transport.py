"""A transport between socket and frames: what it holds back is read, though no poller reports it."""

from __future__ import annotations

import select
import socket
import struct
import threading
from pathlib import Path
from uuid import uuid4

from penstock.broker.node import Node
from penstock.config import BrokerConfig
from penstock.ports import Buffer
from penstock.runtime.clock import SteadyClock
from penstock.runtime.disk import RealDisk
from penstock.runtime.loop import Loop
from penstock.runtime.syncing import SyncPool
from penstock.runtime.transport import PlainTransport

DEADLINE_S = 60.0
REQUESTS = 300
HANDED_OUT_MAX = 50
GREETING = b"hello"
FLIP = bytes.maketrans(bytes(range(256)), bytes(255 - byte for byte in range(256)))


class FlippingTransport(PlainTransport):
    """Each byte is flipped on the way, and what the socket held comes in parts, as TLS hands out its records."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._held = b""
        self._has_greeted = False

    def wants(self) -> int:
        return 0 if self._has_greeted else select.POLLOUT

    def receive_into(self, buffer: memoryview) -> int:
        if not self._held:
            self._held = self._sock.recv(1 << 20).translate(FLIP)
        most = min(HANDED_OUT_MAX, len(buffer))
        part, self._held = self._held[:most], self._held[most:]
        buffer[: len(part)] = part
        return len(part)

    def send(self, chunks: list[Buffer]) -> int:
        if not chunks:
            self._has_greeted = True
            return super().send([GREETING])
        return super().send([bytes(chunk).translate(FLIP) for chunk in chunks])

    def pending(self) -> bool:
        return bool(self._held)


def test_what_a_transport_holds_back_is_read_and_answered(tmp_path: Path) -> None:
    """All requests leave the socket with the first read."""
    config, clock, disk = BrokerConfig(), SteadyClock(), RealDisk(str(tmp_path))
    node = Node(disk, config, ("127.0.0.1", 9092), uuid4, clock.now_ms())
    loop = Loop(node, config, clock, SyncPool(disk, config), FlippingTransport)
    listener = socket.create_server(("127.0.0.1", 0))
    loop.listen(listener)
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    loop.wake_on(reader.fileno())
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        with socket.create_connection(listener.getsockname(), DEADLINE_S) as client:
            assert client.recv(len(GREETING), socket.MSG_WAITALL) == GREETING  # before it was asked for anything
            asked = [struct.pack(">ihhih", 10, 18, 0, number, -1) for number in range(REQUESTS)]
            client.sendall(b"".join(asked).translate(FLIP))
            answers = client.makefile("rb")
            for number in range(REQUESTS):
                (size,) = struct.unpack(">i", answers.read(4).translate(FLIP))
                assert answers.read(size).translate(FLIP)[:4] == struct.pack(">i", number)
    finally:
        loop.stop()
        writer.send(b"!")
        thread.join(DEADLINE_S)
        for sock in (reader, writer):
            sock.close()
    assert not thread.is_alive()
