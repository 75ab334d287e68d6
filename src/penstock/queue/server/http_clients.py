"""Who asks the broker over HTTP for metrics or health: a few at a time, beside the clients of the queue."""

from __future__ import annotations

import select
import socket

from penstock.config.broker import BrokerConfig
from penstock.process.log_lines import log_line
from penstock.queue.node import Node
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.http_endpoints import HttpChannel

TELL_FULL_MS = 60_000  # who is refused may come again at once


class HttpClients:
    """All HTTP connections of one loop, registered with its poller."""

    def __init__(self, node: Node, config: BrokerConfig, clock: SteadyClock, poller: select.epoll) -> None:
        self._node = node
        self._config = config
        self._clock = clock
        self._poller = poller
        self._channels: dict[int, HttpChannel] = {}
        self._tell_full_ms = clock.now_ms()

    def __contains__(self, fd: int) -> bool:
        return fd in self._channels

    def __len__(self) -> int:
        return len(self._channels)

    def accept(self, sock: socket.socket, peer: str) -> None:
        now_ms = self._clock.now_ms()
        if len(self._channels) >= self._config.http_connections_max:
            sock.close()
            if now_ms >= self._tell_full_ms:
                self._tell_full_ms = now_ms + TELL_FULL_MS
                log_line("warning", "http connection refused", peer=peer, reason="http_connections_max are open")
            return
        self._channels[sock.fileno()] = HttpChannel(sock, now_ms)
        self._poller.register(sock.fileno(), select.POLLIN)

    def serve(self, fd: int) -> None:
        """Go on with one of them: it has said something, or takes more of its answer."""
        channel = self._channels[fd]
        try:
            if not channel.out and not channel.receive(self._node):
                return
            if not channel.send_more():
                self._poller.modify(fd, select.POLLOUT)
                return
        except (EOFError, OSError):
            pass
        self._drop(fd)

    def sweep(self, now_ms: int) -> None:
        """Close who takes too long."""
        for fd, channel in list(self._channels.items()):
            if now_ms - channel.began_ms > self._config.request_deadline_ms:
                self._drop(fd)

    def _drop(self, fd: int) -> None:
        channel = self._channels.pop(fd)
        self._poller.unregister(fd)
        channel.sock.close()
