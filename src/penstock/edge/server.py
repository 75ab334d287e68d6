"""uvicorn as the edge needs it: a deadline for every request, bounds on heads and connections."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.config.edge import EdgeConfig
from penstock.connect.asgi import LATE, RENEW, TRANSPORT
from penstock.connect.problem import PROBLEM, problem, title
from penstock.process.log_lines import log_line

HEAD_BYTES_MAX = 64 * 1024
MESSAGE_BYTES_MAX = 64 * 1024  # of what a WebSocket client says, which nobody reads
KEEP_ALIVE_S = 75
STOP_WITHIN_S = 10
SWEEP_S = 0.5


class _Corked:
    """The transport of the answer to a POST. uvicorn writes head and body apart; together they are one system call."""

    __slots__ = ("_head", "_is_open", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._is_open = False

    def write(self, data: bytes) -> None:
        if self._is_open or data.startswith(b"HTTP/1.1 100 "):
            self._transport.write(data)
        elif not self._head:
            self._head = data
        else:
            self._is_open = True
            self._transport.write(self._head + data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        if self._head and not self._is_open:
            self._transport.write(self._head)
        self._transport.close()


class EdgeProtocol(HttpToolsProtocol):
    """One connection. uvicorn itself waits for ever for the end of a head or a body."""

    limits: EdgeConfig

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.began: float | None = None  # of the request that is not yet whole
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.began = time.monotonic()
        self.app_state = self.app_state | {TRANSPORT: transport, RENEW: self.renew}
        if len(self.connections) > self.limits.connections_max:
            self._end(503, "too many connections", (b"retry-after: 1",))

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._head_bytes >= 0:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._end(431, "the head of this request is too large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.began = time.monotonic()
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._head_bytes = -1
        super().on_headers_complete()
        if self.scope["method"] == "POST":
            self.cycle.transport = _Corked(self.transport)  # type: ignore[assignment]  # all that a cycle calls

    def on_message_complete(self) -> None:
        self.began = None
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self.began = None
        super().handle_websocket_upgrade()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # a close would wait for a client that does not read its last answer

    def renew(self) -> None:
        """The request that is not yet whole has as much time as a new one."""
        if self.began is not None:
            self.began = time.monotonic()

    def sweep(self, oldest: float) -> None:
        """End a request that began before `oldest` and is not whole."""
        if self.began is None or self.began > oldest:
            return
        self.began = None
        if self._head_bytes >= 0 or self.cycle is None or self.cycle.response_complete:
            self._end(408, "the request was not whole in time")
            return
        self.cycle.scope[LATE] = True  # type: ignore[literal-required]  # read where the body is awaited
        self.cycle.keep_alive = False
        self.cycle.message_event.set()

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not HTTP."""
        self._end(400, msg)

    def _end(self, status: int, error: str, headers: tuple[bytes, ...] = ()) -> None:
        head = [b"HTTP/1.1 %d %s" % (status, title(status).encode()), b": ".join(PROBLEM), *headers]
        body = problem(status, error)
        head += [b"content-length: %d" % len(body), b"connection: close", b"", b""]
        self.transport.write(b"\r\n".join(head) + body)
        self.transport.close()


class _Lines(logging.Handler):
    """What uvicorn has to say, in the form of our own log."""

    def emit(self, record: logging.LogRecord) -> None:
        log_line(record.levelname, "http", detail=self.format(record))


class EdgeServer(uvicorn.Server):
    """A server whose signals are its owner's, and whose requests end."""

    def __init__(self, config: uvicorn.Config, limits: EdgeConfig) -> None:
        super().__init__(config)
        self._deadline_s = limits.request_deadline_ms / 1000

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def main_loop(self) -> None:
        sweeping = asyncio.create_task(self._sweep())
        try:
            await super().main_loop()
        finally:
            sweeping.cancel()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(SWEEP_S, self._deadline_s / 4))
            oldest = time.monotonic() - self._deadline_s
            for connection in list(self.server_state.connections):
                if isinstance(connection, EdgeProtocol):
                    connection.sweep(oldest)


def edge_server(app: Any, config: EdgeConfig) -> EdgeServer:
    """A server for an ASGI application; `serve(sockets=[…])` runs it until `should_exit`."""
    logger = logging.getLogger("uvicorn")
    logger.handlers, logger.propagate = [_Lines(logging.WARNING)], False
    protocol = type("LimitedProtocol", (EdgeProtocol,), {"limits": config})
    settings = uvicorn.Config(
        app,
        http=protocol,
        ws="websockets-sansio",
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_per_message_deflate=False,
        loop="uvloop",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_WITHIN_S,
        backlog=2048,
    )
    return EdgeServer(settings, config)


def listening_socket(host: str, port: int) -> socket.socket:
    """A bound socket for `serve`; OSError if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock
