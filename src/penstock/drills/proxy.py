"""A TCP proxy between clients and a broker that cuts, delays, loses answers and holds requests back."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

HOLD_MAX_S = 20.0
SWALLOWED, HELD_BACK = "swallowed", "held back"


class _Hold:
    """One request kept back until its client, on another connection, was answered something else."""

    def __init__(self, client_id: bytes, until_key: int) -> None:
        self.client_id = client_id
        self.until_key = until_key
        self.is_over = threading.Event()
        self.is_late = False


class LossyProxy:
    """Passes whole frames on; `swallow(api_key, count)` loses the next answers to that API, and their connections."""

    def __init__(self, target_port: int, port: int = 0, tell: Callable[[str], None] = lambda _: None) -> None:
        """`tell` hears of each answer swallowed and each request held back, when it has happened."""
        self._tell = tell
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self.swallowed = 0
        self.held_back = 0
        self._lock = threading.Lock()
        self._left = 0
        self._api_key = 0
        self._delay_s = 0.0
        self._is_open = True
        self._hold_keys: tuple[int, int] | None = None
        self._holds: list[_Hold] = []
        self._pairs: dict[int, tuple[socket.socket, socket.socket]] = {}
        self._count = 0
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    @property
    def holding(self) -> int:
        """How many requests are kept back now."""
        return len(self._holds)

    def swallow(self, api_key: int, count: int) -> None:
        with self._lock:
            self._api_key, self._left = api_key, count

    def delay(self, seconds: float) -> None:
        """Every frame from now on comes later by so much."""
        self._delay_s = seconds

    def hold(self, api_key: int, until_key: int) -> None:
        """Keep the next request of that API back until its client has come again and was answered the other."""
        with self._lock:
            self._hold_keys = (api_key, until_key)

    def cut(self, share: float = 1.0) -> None:
        """End connections, the oldest first; what was held back on them is lost."""
        with self._lock:
            pairs = list(self._pairs.values())
        for pair in pairs[: round(len(pairs) * share)]:
            _end(*pair)

    def close_gate(self) -> None:
        """Nobody gets through: connections end, new ones too."""
        self._is_open = False
        self.cut()

    def open_gate(self) -> None:
        self._is_open = True

    def calm(self) -> None:
        """Pass everything on, at once."""
        with self._lock:
            self._left, self._hold_keys, self._delay_s = 0, None, 0.0
            for hold in self._holds:
                hold.is_over.set()
        self._is_open = True

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    broker = socket.create_connection(self._target) if self._is_open else None
                except OSError:
                    broker = None
                if broker is None:
                    client.close()
                    continue
                for sock in (client, broker):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._begin(client, broker)

    def _begin(self, client: socket.socket, broker: socket.socket) -> None:
        with self._lock:
            self._count += 1
            number = self._count
            self._pairs[number] = (client, broker)
        asked: dict[int, tuple[int, bytes]] = {}
        answers = threading.Thread(target=self._answers, args=(client, broker, asked), daemon=True)
        answers.start()
        threading.Thread(target=self._requests, args=(number, asked, answers), daemon=True).start()

    def _requests(self, number: int, asked: dict[int, tuple[int, bytes]], answers: threading.Thread) -> None:
        client, broker = self._pairs[number]
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(client)
                key, _, correlation_id = struct.unpack_from(">hhi", frame, 4)
                client_id = _client_id(frame)
                asked[correlation_id] = (key, client_id)
                is_late = self._wait(key, client_id)
                broker.sendall(frame)
                if is_late:
                    self.held_back += 1
                    self._tell(HELD_BACK)
        _end(client, broker)
        answers.join()
        with self._lock:
            self._pairs.pop(number, None)
        client.close()
        broker.close()

    def _answers(self, client: socket.socket, broker: socket.socket, asked: dict[int, tuple[int, bytes]]) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                frame = _frame(broker)
                key, client_id = asked.pop(struct.unpack_from(">i", frame, 4)[0], (-1, b""))
                if self._is_lost(key):
                    break
                self._release(key, client_id)
                if self._delay_s:
                    time.sleep(self._delay_s)
                client.sendall(frame)
        _end(client, broker)

    def _is_lost(self, key: int) -> bool:
        with self._lock:
            if not self._left or key != self._api_key:
                return False
            self._left -= 1
            self.swallowed += 1
        self._tell(SWALLOWED)
        return True

    def _wait(self, key: int, client_id: bytes) -> bool:
        """As long as this request is to be late; whether its client did come again before it goes on."""
        if self._delay_s:
            time.sleep(self._delay_s)
        with self._lock:
            if self._hold_keys is None or self._hold_keys[0] != key:
                return False
            hold = _Hold(client_id, self._hold_keys[1])
            self._hold_keys = None
            self._holds.append(hold)
        hold.is_over.wait(HOLD_MAX_S)
        with self._lock:
            self._holds.remove(hold)
        return hold.is_late

    def _release(self, key: int, client_id: bytes) -> None:
        if self._holds:
            with self._lock:
                for hold in self._holds:
                    if hold.client_id == client_id and hold.until_key == key:
                        hold.is_late = True
                        hold.is_over.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_gate()


def _client_id(frame: bytes) -> bytes:
    """The client id in a request's header."""
    size = struct.unpack_from(">h", frame, 12)[0] if len(frame) >= 14 else -1
    return frame[14 : 14 + size] if size > 0 else b""


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
