"""A load of HTTP requests from a process of its own: raw sockets, so that it costs less than what it measures."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import cast

import uvloop


class Connection(asyncio.Protocol):
    """One client: sends the next request when the last was answered, until the deadline."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._left = b""
        self._sent_at = 0.0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass
        self._send()

    def _send(self) -> None:
        if self._load.is_over():
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(self._load.next_request())

    def data_received(self, data: bytes) -> None:
        data = self._left + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._left = data
            return
        mark = data.find(b"content-length: ", 0, end)
        size = int(data[mark + 16 : data.index(b"\r\n", mark)]) if mark >= 0 else 0
        if len(data) < end + 4 + size:
            self._left = data
            return
        self._left = b""
        self._load.on_answer(data[9:12], time.perf_counter() - self._sent_at)
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.on_closed()


class Load:
    """Many connections with the same kind of request; {n} in the body is a number of its own."""

    def __init__(self, host: str, port: int, path: str, body: str, kind: str, seconds: float) -> None:
        self._head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: "
        self._body = body
        self._seconds = seconds
        self._address = host, port
        self._count = 0
        self._open = 0
        self._deadline = 0.0
        self._closed = asyncio.Event()
        self.statuses: dict[str, int] = {}
        self.times: list[float] = []

    def is_over(self) -> bool:
        return time.perf_counter() > self._deadline

    def next_request(self) -> bytes:
        self._count += 1
        body = self._body.replace("{n}", str(self._count))
        return f"{self._head}{len(body)}\r\n\r\n{body}".encode()

    def on_answer(self, status: bytes, seconds: float) -> None:
        said = status.decode()
        self.statuses[said] = self.statuses.get(said, 0) + 1
        self.times.append(seconds)

    def on_closed(self) -> None:
        self._open -= 1
        if not self._open:
            self._closed.set()

    async def run(self, connections: int) -> dict[str, object]:
        """What was answered, how fast."""
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        self._deadline = began + self._seconds
        self._open = connections
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), *self._address)
        await self._closed.wait()
        took = time.perf_counter() - began
        times = sorted(self.times) or [0.0]
        return {
            "requests_per_s": round(len(self.times) / took, 1),
            "statuses": self.statuses,
            "p50_ms": round(times[len(times) // 2] * 1000, 2),
            "p99_ms": round(times[len(times) * 99 // 100] * 1000, 2),
        }


def main() -> None:
    """python -m bench.http_load HOST:PORT PATH BODY"""
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("path")
    parser.add_argument("body")
    parser.add_argument("--kind", default="application/json")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    host, _, port = given.address.rpartition(":")

    async def run() -> dict[str, object]:
        load = Load(host, int(port), given.path, given.body, given.kind, given.seconds)
        return await load.run(given.connections)

    print(json.dumps(uvloop.run(run())))


if __name__ == "__main__":
    main()
