"""A transport between socket and frames: real TLS runs through the loop, which knows nothing of it."""

from __future__ import annotations

import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from penstock.config.broker import BrokerConfig
from penstock.ports import Buffer
from penstock.queue.node import Node
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.disk import RealDisk
from penstock.queue.server.event_loop import Loop
from penstock.queue.server.sync_pool import SyncPool
from penstock.queue.server.transport import PlainTransport, Transport

DEADLINE_S = 60.0
REQUESTS = 300
HANDED_OUT_MAX = 50
WRITTEN_MAX = 100  # less than a handshake, and less than the answer to ApiVersions
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


def without_certificates(protocol: int) -> ssl.SSLContext:
    """TLS 1.2 with an anonymous key exchange: a test needs no certificate."""
    context = ssl.SSLContext(protocol)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return context


class TlsTransport(Transport):
    """TLS over memory, which takes at most WRITTEN_MAX bytes to the socket at a time."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._come, self._go = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = CONTEXT.wrap_bio(self._come, self._go, server_side=True)
        self._unsent = b""
        self._is_open = False

    def receive_into(self, buffer: memoryview) -> int:
        with suppress(BlockingIOError):
            data = self._sock.recv(1 << 16)
            if not data:
                return 0
            self._come.write(data)
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._is_open = True
            return self._tls.read(min(HANDED_OUT_MAX, len(buffer)), buffer)
        except ssl.SSLWantReadError:
            raise BlockingIOError from None
        finally:
            self._unsent += self._go.read()

    def send(self, chunks: list[Buffer]) -> int:
        if self._unsent:
            self._write()
        if self._unsent and chunks:
            raise BlockingIOError
        for chunk in chunks:
            self._tls.write(chunk)
        self._unsent += self._go.read()
        self._write()
        return sum(map(len, chunks))

    def _write(self) -> None:
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self._sock.send(self._unsent[:WRITTEN_MAX]) :]

    def pending(self) -> bool:
        return self._is_open and (self._tls.pending() > 0 or self._come.pending > 0)

    def wants(self) -> int:
        return select.POLLOUT if self._unsent else 0


CONTEXT = without_certificates(ssl.PROTOCOL_TLS_SERVER)


@contextmanager
def serving(folder: Path, transport: Callable[[socket.socket], Transport]) -> Iterator[tuple[str, int]]:
    """A broker with this transport, in a thread."""
    config, clock, disk = BrokerConfig(), SteadyClock(), RealDisk(str(folder))
    node = Node(disk, config, ("127.0.0.1", 9092), uuid4, clock.now_ms())
    loop = Loop(node, config, clock, SyncPool(disk, config))
    listener = socket.create_server(("127.0.0.1", 0))
    loop.listen(listener, transport=transport)
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    loop.wake_on(reader.fileno())
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        loop.stop()
        writer.send(b"!")
        thread.join(DEADLINE_S)
        for sock in (reader, writer):
            sock.close()
    assert not thread.is_alive()


def requests() -> list[bytes]:
    return [struct.pack(">ihhih", 10, 18, 0, number, -1) for number in range(REQUESTS)]


def test_what_a_transport_holds_back_is_read_and_answered(tmp_path: Path) -> None:
    """All requests leave the socket with the first read."""
    with (
        serving(tmp_path, FlippingTransport) as address,
        socket.create_connection(address, DEADLINE_S) as client,
    ):
        assert client.recv(len(GREETING), socket.MSG_WAITALL) == GREETING  # before it was asked for anything
        client.sendall(b"".join(requests()).translate(FLIP))
        answers = client.makefile("rb")
        for number in range(REQUESTS):
            (size,) = struct.unpack(">i", answers.read(4).translate(FLIP))
            assert answers.read(size).translate(FLIP)[:4] == struct.pack(">i", number)


def test_real_tls_needs_nothing_but_a_transport(tmp_path: Path) -> None:
    """The handshake reads and writes in turns, and each answer leaves the transport in parts."""
    with (
        serving(tmp_path, TlsTransport) as address,
        socket.create_connection(address, DEADLINE_S) as plain,
        without_certificates(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(plain) as client,
    ):
        client.sendall(b"".join(requests()))
        answers = client.makefile("rb")
        for number in range(REQUESTS):
            (size,) = struct.unpack(">i", answers.read(4))
            assert answers.read(size)[:4] == struct.pack(">i", number)


def test_an_answer_that_waits_in_the_transport_is_sent_before_the_close(tmp_path: Path) -> None:
    """The node is done with the connection when the last part is still on its way."""
    with (
        serving(tmp_path, TlsTransport) as address,
        socket.create_connection(address, DEADLINE_S) as plain,
        without_certificates(ssl.PROTOCOL_TLS_CLIENT).wrap_socket(plain) as client,
    ):
        unknown = struct.pack(">ihhih", 10, 9999, 0, 1, -1)  # the node closes the connection for it
        client.sendall(requests()[0] + unknown)
        answers = client.makefile("rb")
        (size,) = struct.unpack(">i", answers.read(4))
        assert size > WRITTEN_MAX // 2
        assert answers.read(size)[:4] == struct.pack(">i", 0)
