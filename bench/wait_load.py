"""A process that sends events at a steady rate and waits for each decision: ADDRESS PATH RATE SECONDS."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import uvloop

from bench.latency_consumer import percentile
from bench.path_events import event

_ANSWER_WITHIN_S = 30.0


class Client:
    """Connections are kept; one more is opened when all are busy, so that a stall delays no sending."""

    def __init__(self, address: str, path: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._head = f"POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: "
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.delays_ns: list[int] = []
        self.refused: dict[str, int] = {}

    async def send(self, number: int, due_ns: int) -> None:
        """One event, timed from when it was due."""
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        body = event(number, due_ns)
        writer.write(f"{self._head}{len(body)}\r\n\r\n".encode() + body)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _ANSWER_WITHIN_S)
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(size)
        if head[9:12] == b"200" and b"decision" in answer:
            self.delays_ns.append(time.time_ns() - due_ns)
        else:
            said = (head[9:12] + b" " + answer[:200]).decode(errors="replace")
            self.refused[said] = self.refused.get(said, 0) + 1
        self._idle.append((reader, writer))


async def load(address: str, path: str, rate: int, seconds: float) -> dict[str, float]:
    """Percentiles in ms; everything must be decided."""
    client, sending = Client(address, path), []
    began_ns = time.time_ns()
    first = began_ns // 1_000 % 1_000_000_000
    for number in range(int(rate * seconds)):
        due_ns = began_ns + number * 1_000_000_000 // rate
        await asyncio.sleep((due_ns - time.time_ns()) / 1e9)
        sending.append(asyncio.create_task(client.send(first + number, due_ns)))
    await asyncio.gather(*sending)
    if client.refused:
        raise RuntimeError(f"not everything was decided: {dict(list(client.refused.items())[:3])}")
    ordered = sorted(client.delays_ns)
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}
    told = {name: percentile(ordered, share) / 1e6 for name, share in shares.items()}
    return told | {"began_ns": began_ns, "ended_ns": time.time_ns()}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(load(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))))
