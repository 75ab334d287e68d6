"""A TCP proxy between clients and a broker that can lose answers after the broker has done the work."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from types import TracebackType
from typing import Self


class LossyProxy:
    """Passes whole frames on; `swallow(api_key, count)` loses the next answers to that API, and their connections."""

    def __init__(self, target_port: int, port: int = 0) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.swallowed = 0
        self._lock = threading.Lock()
        self._left = 0
        self._api_key = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def swallow(self, api_key: int, count: int) -> None:
        with self._lock:
            self._api_key, self._left = api_key, count

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._target)
                for sock in (client, broker):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open += [client, broker]
                asked: dict[int, int] = {}
                for pump in (self._requests, self._answers):
                    threading.Thread(target=pump, args=(client, broker, asked), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, asked: dict[int, int]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(client)
                key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
                asked[correlation_id] = key
                broker.sendall(frame)
        _end(client, broker)

    def _answers(self, client: socket.socket, broker: socket.socket, asked: dict[int, int]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(broker)
                key = asked.pop(struct.unpack_from(">i", frame, 4)[0], -1)
                if self._is_lost(key):
                    break
                client.sendall(frame)
        _end(client, broker)

    def _is_lost(self, key: int) -> bool:
        with self._lock:
            if not self._left or key != self._api_key:
                return False
            self._left -= 1
            self.swallowed += 1
            return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        _end(*self._open)
        for sock in self._open:
            sock.close()


def _frame(sock: socket.socket) -> bytes:
    """One frame with its length; EOFError at the end."""
    head = _exactly(sock, 4)
    return head + _exactly(sock, struct.unpack(">i", head)[0])


def _exactly(sock: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        piece = sock.recv(size - len(got))
        if not piece:
            raise EOFError
        got += piece
    return bytes(got)


def _end(*sockets: socket.socket) -> None:
    for sock in sockets:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
