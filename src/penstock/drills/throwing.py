"""Frames thrown at a broker, each on a connection of its own, several at once."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Iterator

from penstock.drills.plain_client import DEADLINE_S, PlainClient
from penstock.errors import PenstockError

AT_ONCE = 8


class HangError(PenstockError):
    """The broker neither answered a frame nor closed its connection."""

    def __init__(self, frame: bytes) -> None:
        super().__init__(f"the broker hangs on {frame.hex()}")
        self.frame = frame


def throw(port: int, frames: Iterator[bytes], at_once: int = AT_ONCE) -> int:
    """Throw them all, and wait until the broker has closed every connection; how many. HangError."""
    thrown = 0
    under_way: dict[socket.socket, tuple[PlainClient, bytes, float]] = {}
    with selectors.DefaultSelector() as selector:
        try:
            for frame in frames:
                thrown += 1
                client = _thrown(port, frame)
                if client is not None:
                    under_way[client.sock] = client, frame, time.monotonic() + DEADLINE_S
                    selector.register(client.sock, selectors.EVENT_READ)
                while len(under_way) >= at_once:
                    _take(selector, under_way)
            while under_way:
                _take(selector, under_way)
        finally:
            for client, _, _ in under_way.values():
                client.close()
    return thrown


def _thrown(port: int, frame: bytes) -> PlainClient | None:
    """A connection with a frame on its way and nothing to follow; None if the broker has closed it already."""
    client = PlainClient(port)
    try:
        client.send(frame)
        client.sock.shutdown(socket.SHUT_WR)
    except OSError:
        client.close()
        return None
    client.sock.setblocking(False)
    return client


def _take(selector: selectors.BaseSelector, under_way: dict[socket.socket, tuple[PlainClient, bytes, float]]) -> None:
    """Read what has come; connections that the broker closed are done."""
    for key, _ in selector.select(1.0):
        sock = key.fileobj
        if not isinstance(sock, socket.socket) or not _is_over(sock):
            continue
        selector.unregister(sock)
        under_way.pop(sock)[0].close()
    if under_way:
        _, frame, deadline = next(iter(under_way.values()))
        if time.monotonic() > deadline:
            raise HangError(frame)


def _is_over(sock: socket.socket) -> bool:
    try:
        while sock.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True
