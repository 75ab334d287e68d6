"""Many SSE clients of one topic in one process: how long from produce to every client, and what the server takes.

python -m bench.sse_load --queue HOST:PORT --url http://HOST:PORT/live/TOPIC --topic TOPIC --clients 1000 --rate 10
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import selectors
import socket
import statistics
import threading
import time
from urllib.parse import urlsplit

from confluent_kafka import Producer

from bench.process import cpu_seconds, resident_bytes

_SENT = re.compile(rb'"sent_ns":(\d+)')
_CONNECT_AT_ONCE = 100
_GRACE_S = 5.0


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--pid", type=int, help="the server, to tell its memory and processor time")
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = Crowd(given.url, given.clients)
    before = (resident_bytes(given.pid), cpu_seconds(given.pid)) if given.pid else None
    count = int(given.rate * given.seconds)
    sender = threading.Thread(target=_send, args=(given.queue, given.topic, count, given.rate), daemon=True)
    sender.start()
    began = time.monotonic()
    crowd.read(count * given.clients, began + given.seconds + _GRACE_S)
    took = time.monotonic() - began
    ordered = sorted(crowd.latencies_ms)
    told: dict[str, float] = {
        "clients": given.clients,
        "expected": count * given.clients,
        "received": len(ordered),
        "avg_ms": statistics.fmean(ordered),
        **{f"p{p}_ms": ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] for p in (50, 90, 99, 99.9)},
        "max_ms": ordered[-1],
    }
    if before is not None:
        told["server_mib_before"] = before[0] / 2**20
        told["server_mib_after"] = resident_bytes(given.pid) / 2**20
        told["server_cpu_share"] = (cpu_seconds(given.pid) - before[1]) / took
    print(json.dumps({name: round(value, 2) for name, value in told.items()}))


class Crowd:
    """Connected clients that read everything as it comes."""

    def __init__(self, url: str, count: int) -> None:
        self.latencies_ms: list[float] = []
        self._selector = selectors.DefaultSelector()
        self._url = urlsplit(url)
        for first in range(0, count, _CONNECT_AT_ONCE):
            self._connect(min(_CONNECT_AT_ONCE, count - first))

    def _connect(self, count: int) -> None:
        """Connect some, and wait until each has its first event."""
        host, port = self._url.hostname, self._url.port
        target = self._url.path + (f"?{self._url.query}" if self._url.query else "")
        opened = [socket.create_connection((host, port), timeout=30) for _ in range(count)]
        for sock in opened:
            sock.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        for sock in opened:
            seen = b""
            while b"penstock.start" not in seen:
                more = sock.recv(4096)
                assert more, f"refused: {seen!r}"
                seen += more
            assert b" 200 " in seen, seen
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)

    def read(self, expected: int, deadline: float) -> None:
        """Until everybody has everything, or the deadline."""
        while len(self.latencies_ms) < expected and time.monotonic() < deadline:
            for key, _ in self._selector.select(0.2):
                assert isinstance(key.fileobj, socket.socket)
                data = key.fileobj.recv(1 << 18)
                assert data, "the server closed a client"
                now = time.time_ns()
                self.latencies_ms += [(now - int(sent)) / 1e6 for sent in _SENT.findall(data)]


def _send(queue: str, topic: str, count: int, rate: float) -> None:
    producer = Producer({"bootstrap.servers": queue, "linger.ms": 0, "log_level": 0})
    producer.produce(topic, b'{"warm":true}')
    producer.flush(30)
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        value = b'{"n":%d,"sent_ns":%d,"text":"%s"}' % (number, time.time_ns(), b"x" * 100)
        producer.produce(topic, value, b"k%d" % (number % 10))
        producer.poll(0)
    producer.flush(30)


if __name__ == "__main__":
    main()
