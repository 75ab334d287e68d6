"""How bytes of a client come and go. What is between the socket and the frames, such as TLS, is a transport."""

from __future__ import annotations

import socket

from penstock.ports import Buffer


class Transport:
    """A socket that does not block, as a channel reads and writes it.

    A transport turns what its own protocol has to wait for into BlockingIOError; any other OSError closes the client.
    It may take bytes that the socket does not: `wants` says so until they are sent. What `pending` reports is read in
    the next turn, also of a connection that is still unidentified; such a transport has to bound its handshake. A
    module with another transport belongs to the compiled ones (queue/compiled/modules.py), else a compiled broker does
    not accept its class.
    """

    __slots__ = ("_sock", "fd")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.fd = sock.fileno()

    def receive_into(self, buffer: memoryview) -> int:
        """How many bytes have come, 0 at the end of the stream; BlockingIOError if none have."""
        raise NotImplementedError

    def send(self, chunks: list[Buffer]) -> int:
        """How many bytes were taken; BlockingIOError if none were.

        It is called with no chunks while `wants` asks for it: a handshake writes, or what was taken before goes on.
        """
        raise NotImplementedError

    def pending(self) -> bool:
        """Whether bytes have come that the poller does not report, since they have left the socket."""
        raise NotImplementedError

    def wants(self) -> int:
        """What the poller has to watch for besides what the channel waits for: POLLOUT while bytes wait in here."""
        raise NotImplementedError

    def has_input(self) -> bool:
        """Whether bytes wait in the socket that were not read yet."""
        try:
            return bool(self._sock.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def close(self) -> None:
        self._sock.close()


class PlainTransport(Transport):
    """The bytes of the socket are those of the protocol."""

    __slots__ = ()

    def receive_into(self, buffer: memoryview) -> int:
        return self._sock.recv_into(buffer)

    def send(self, chunks: list[Buffer]) -> int:
        if len(chunks) == 1:
            return self._sock.send(chunks[0])
        return self._sock.sendmsg(chunks)

    def pending(self) -> bool:
        return False

    def wants(self) -> int:
        return 0
