"""GET /metrics, /health and /ready: small enough to need no server of its own."""

from __future__ import annotations

import json
import socket

from penstock.queue.core.counters import render_metrics
from penstock.queue.node import Node

REQUEST_BYTES_MAX = 8 * 1024
_STATUS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HttpChannel:
    """One request, one answer, closed."""

    __slots__ = ("_data", "began_ms", "out", "sock")

    def __init__(self, sock: socket.socket, now_ms: int) -> None:
        self.sock = sock
        self.began_ms = now_ms
        self._data = b""
        self.out = b""

    def receive(self, node: Node) -> bool:
        """Take in what came; True once there is an answer to send."""
        data = self.sock.recv(REQUEST_BYTES_MAX)
        if not data:
            raise EOFError
        self._data += data
        if b"\r\n\r\n" not in self._data and len(self._data) < REQUEST_BYTES_MAX and _may_be_http(self._data):
            return False
        self.out = answer(node, self._data)
        return True

    def send_more(self) -> bool:
        """Send what the socket takes; True when nothing is left."""
        try:
            self.out = self.out[self.sock.send(self.out) :]
        except BlockingIOError:
            return False
        return not self.out


def _may_be_http(begun: bytes) -> bool:
    """A Kafka client that was given the wrong port begins with a length, and would wait for an answer in vain."""
    return all(letter > 0x1F for letter in begun[:4])


def answer(node: Node, request: bytes) -> bytes:
    """The response to a request's bytes."""
    words = request.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        return _response(400, "text/plain", "this is not HTTP\n")
    if words[0] != b"GET":
        return _response(405, "text/plain", "only GET\n")
    path = words[1].split(b"?")[0]
    if path == b"/metrics":
        return _response(200, "text/plain; version=0.0.4; charset=utf-8", render_metrics(node.counters, _gauges(node)))
    if path in (b"/health", b"/ready"):
        stopped, damaged = node.stopped, node.damaged
        status = "stopped partitions" if stopped else "damaged records" if damaged else "ok"
        body = {"status": status, "stopped": stopped, "damaged": damaged}
        return _response(503 if stopped else 200, "application/json", json.dumps(body) + "\n")
    return _response(404, "text/plain", "try /metrics, /health or /ready\n")


def _gauges(node: Node) -> dict[str, tuple[str, int]]:
    return {
        "connections_open": ("Connections now.", len(node.connections)),
        "topics": ("Topics.", len(node.catalog.topics)),
        "partitions": ("Partitions of all topics.", node.catalog.partition_count),
        "partitions_open": ("Partitions in use since the start.", len(node.store.open)),
        "partitions_stopped": ("Partitions that a disk error has stopped.", len(node.stopped)),
        "partitions_damaged": ("Partitions in which a damaged record was met since the start.", len(node.damaged)),
        "inflight_bytes": ("Bytes of requests unanswered and large replies unsent.", node.room.held_bytes),
    }


def _response(status: int, kind: str, body: str) -> bytes:
    data = body.encode()
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n"
        "Connection: close\r\nCache-Control: no-store\r\n\r\n"
    )
    return head.encode() + data
