"""A real broker and a real edge with deliveries, to be killed and started again on the same ports."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition

from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.drills.broker_process import BrokerProcess
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.run_spec import RunSpec
from penstock.process.free_port import free_port
from penstock.process.run_spec_file import write_spec

DEADLINE_S = 60.0
APP = """
from penstock import App, Guarantee

app = App("live")
some = Guarantee(loss="some", delivery="at-most-once")
app.topic("decisions", schema="n INT", partitions=2)
app.topic("prices", schema="n INT")
app.topic("ticks", schema="n INT")
app.topic("fleeting", schema="n INT", guarantee=some)
app.deliver("decisions")
app.deliver("prices", slow_client="conflate", backlog_max=10)
app.deliver("ticks", slow_client="drop_oldest", backlog_max=10)
app.deliver("fleeting")
app.deliver("decisions", at="/live/small", backlog_max=10)
"""
TOPICS = {"decisions": 2, "prices": 1, "ticks": 1, "fleeting": 1}

admin: Any = importlib.import_module("confluent_kafka.admin")


class Stage:
    """The parts of one test."""

    def __init__(self, folder: Path, *, kafka: str = "", **edge: Any) -> None:
        """`kafka`: the address of a Kafka that is used instead of a broker of ours."""
        self.broker = BrokerProcess(folder / "data", folder)
        self._edge: subprocess.Popen[bytes] | None = None
        if not kafka:
            self.broker.start()
        self.queue = kafka or self.broker.address
        self.sent = 0
        self.port = free_port()
        self._spec = folder / "spec.json"
        self._errors = folder / "edge.err"
        (folder / "live_app.py").write_text(APP)
        spec = RunSpec(
            app=f"{folder / 'live_app.py'}:app",
            data=str(folder),
            queue=KafkaTarget.parse(self.queue),
            kind=Queue("kafka" if kafka else "penstock"),
            edge=EdgeConfig(listen=f"127.0.0.1:{self.port}", **edge),
            analyze=AnalyzeConfig(),
        )
        write_spec(spec, self._spec)
        self._client = {"bootstrap.servers": self.queue, "log_level": 0}
        try:
            self._create_topics()
            self._producer = Producer({**self._client, "linger.ms": 0})
            self.start_edge()
        except BaseException:
            self.close()
            raise

    def _create_topics(self) -> None:
        client = admin.AdminClient(self._client)
        for made in client.create_topics([admin.NewTopic(*topic, 1) for topic in TOPICS.items()]).values():
            made.result(DEADLINE_S)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def edge_pid(self) -> int:
        assert self._edge is not None
        return self._edge.pid

    @property
    def edge_errors(self) -> str:
        return self._errors.read_text()

    def start_edge(self) -> None:
        with self._errors.open("ab") as errors:
            self._edge = subprocess.Popen(
                [sys.executable, "-m", "penstock.edge", str(self._spec)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        assert self._edge.stdout is not None
        line = self._edge.stdout.readline()
        assert line.startswith(b"ready"), self.edge_errors
        until(lambda: self.status("/live/*") == 200)

    def kill_edge(self) -> None:
        self._end_edge(signal.SIGKILL)

    def stop_edge(self) -> int:
        return self._end_edge(signal.SIGTERM)

    def _end_edge(self, number: int) -> int:
        edge, self._edge = self._edge, None
        if edge is None:
            return 0
        os.kill(edge.pid, number)
        status = edge.wait(DEADLINE_S)
        for pipe in (edge.stdin, edge.stdout):
            if pipe is not None:
                pipe.close()
        return status

    def close(self) -> None:
        self.kill_edge()
        self.broker.kill()

    def send(self, topic: str, count: int, *, partition: int = 0, key: bytes | None = None, pad: int = 0) -> None:
        """Numbered values, acknowledged when it returns."""
        for _ in range(count):
            value = b'{"n":%d,"pad":"%s"}' % (self.sent, b"x" * pad)
            self.sent += 1
            while True:
                try:
                    self._producer.produce(topic, value, key, partition)
                    break
                except BufferError:
                    self._producer.poll(1)
        assert self._producer.flush(DEADLINE_S) == 0

    def trim(self, topic: str, offset: int) -> None:
        """Delete what stands before `offset`, as retention would."""
        client = admin.AdminClient(self._client)
        for done in client.delete_records([TopicPartition(topic, 0, offset)]).values():
            done.result(DEADLINE_S)

    def status(self, path: str, headers: dict[str, str] | None = None) -> int:
        return self.get(path, headers)[0]

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes, dict[str, str]]:
        """Status, the first bytes and headers of an answer; an answer that goes on is closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            is_live = "event-stream" in named.get("content-type", "")
            return answer.status, b"" if is_live else answer.read(), named
        finally:
            connection.close()

    def metric(self, name: str) -> int:
        found = re.search(rf"^penstock_edge_live_{name} (\d+)$", self.get("/metrics")[1].decode(), re.MULTILINE)
        return int(found[1]) if found else -1


class Event:
    """A server-sent event."""

    def __init__(self, name: str, id: str, data: str) -> None:
        self.name = name
        self.id = id
        self.json: dict[str, Any] = json.loads(data)

    @property
    def n(self) -> int:
        number: int = self.json["value"]["n"]
        return number

    @property
    def place(self) -> tuple[str, int, int]:
        return self.json["topic"], self.json["partition"], self.json["offset"]


class Curl:
    """A real curl that follows a stream; its events in order."""

    def __init__(self, curl: str, url: str, *flags: str) -> None:
        self._process = subprocess.Popen([curl, "-sSN", *flags, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._events: queue.Queue[Event | None] = queue.Queue()
        self.beats = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        fields: dict[str, str] = {}
        for raw in self._process.stdout:
            line = raw.decode().removesuffix("\n")
            if line.startswith(":"):
                self.beats += 1
            elif line:
                name, _, value = line.partition(": ")
                fields[name] = fields[name] + "\n" + value if name == "data" and name in fields else value
            else:
                if "data" in fields:
                    self._events.put(Event(fields.get("event", "message"), fields.get("id", ""), fields["data"]))
                fields = {}
        self._events.put(None)

    def next(self) -> Event | None:
        """The next event; None when the stream has ended."""
        return self._events.get(timeout=DEADLINE_S)

    def take(self, count: int) -> list[Event]:
        """So many records or notices but the start."""
        found: list[Event] = []
        while len(found) < count:
            event = self.next()
            assert event is not None, f"the stream ended after {len(found)} of {count}"
            if event.name != "penstock.start":
                found.append(event)
        return found

    def started(self) -> Event:
        event = self.next()
        assert event is not None
        assert event.name == "penstock.start"
        return event

    def close(self) -> None:
        self._process.kill()
        self._reader.join()
        self._process.communicate()


class SlowReader:
    """A client with a small window that reads only when told to."""

    def __init__(self, port: int, path: str) -> None:
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(DEADLINE_S)
        self.sock.connect(("127.0.0.1", port))
        self.sock.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        self.seen = b""
        while b"penstock.start" not in self.seen:
            self.seen += self.sock.recv(1)

    def read_all(self) -> bytes:
        """Everything up to the end of the stream, or of the connection."""
        try:
            while not self.seen.endswith(b"\r\n0\r\n\r\n") and (more := self.sock.recv(65536)):
                self.seen += more
        except ConnectionResetError:
            pass
        return self.seen

    def close(self) -> None:
        self.sock.close()


def until(fact: Any) -> None:
    """Wait for a fact that another process makes true."""
    deadline = time.monotonic() + DEADLINE_S
    while not fact():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def places(events: Sequence[Event]) -> Iterator[tuple[str, int, int]]:
    return (event.place for event in events if not event.name.startswith("penstock."))
