"""A real broker and a real edge with doors in, to be paused, killed and started again on the same ports."""

from __future__ import annotations

import http.client
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.client.record import Record, record_of
from penstock.client.topics import provide_topics
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.drills.broker_process import BrokerProcess
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.planner import plan_app
from penstock.plan.run_spec import CHECKED_FIRST, RunSpec
from penstock.plan.topics import wanted_topics
from penstock.process.app_loader import load_app
from penstock.process.free_port import free_port
from penstock.process.run_spec_file import write_spec

DEADLINE_S = 60.0
APP = """
from penstock import App, Guarantee, sources

app = App("shop")
app.topic("purchases", schema="id STRING, card STRING, amount DOUBLE, country STRING, at TIMESTAMP",
          key="card", identity="id", event_time="at", partitions=2)
app.topic("notes", schema="text STRING NOT NULL, stars INT", partitions=2)
app.topic("fleeting", schema="n INT", guarantee=Guarantee(loss="some", delivery="at-most-once"))
app.topic("anything", key=("a", "b"))
app.topic("decisions", schema="id STRING, decision STRING", partitions=2)
app.ingest(sources.Http("/purchases"), into="purchases")
app.ingest(sources.Http("/shop/notes"), into="notes")
app.ingest(sources.Http(), into="fleeting")
app.ingest(sources.Http(), into="anything")

@app.query(reads="purchases", writes="decisions", watermark="2 hours")
def decide(purchases): return purchases

@app.query(reads="decisions", writes="verdicts")
def judge(decisions): return decisions

@app.query(reads="notes", writes="stars")
def count_stars(notes): return notes
"""


class Answer(NamedTuple):
    """What the edge said."""

    status: int
    json: Any
    headers: Mapping[str, str]


def check_kind(answer: Answer) -> None:
    """Every error is a problem of RFC 9457 and keeps the field `error`; other JSON is plain."""
    kind = answer.headers.get("content-type", "")
    if answer.status < 400:
        assert kind != "application/problem+json"
        return
    assert kind == "application/problem+json", answer
    body = answer.json
    assert (body["type"], body["status"]) == ("about:blank", answer.status)
    assert body["title"]
    assert body["detail"]
    assert body["error"] == body["detail"]
    if answer.status != 404:  # GET /results may be asked again
        assert ("retry-after" in answer.headers) == (answer.status in (429, 503)), answer


class EdgeStage:
    """The parts of one test."""

    def __init__(
        self,
        folder: Path,
        *,
        handles: int = 0,
        words: Sequence[str] = (),
        broker: Mapping[str, Any] | None = None,
        kafka: str = "",
        **edge: Any,
    ) -> None:
        """`broker` are options of its process, `edge` settings of the edge.

        `kafka` is the address of a Kafka that is used instead of a broker of ours.
        """
        self.broker = BrokerProcess(folder / "data", folder, **(broker or {}))
        if not kafka:
            self.broker.start()
        self.queue = kafka or self.broker.address
        kind = Queue("kafka" if kafka else "penstock")
        (folder / "shop_app.py").write_text(APP)
        self.port = free_port()
        app = f"{folder / 'shop_app.py'}:app"
        made = provide_topics(KafkaTarget.parse(self.queue), list(wanted_topics(plan_app(load_app(app), kind)))).created
        self._of_others = made if kafka else []  # the Kafka is that of other tests, too
        self.spec = folder / "spec.json"
        config = EdgeConfig(**{"listen": f"127.0.0.1:{self.port}", **edge})
        write_spec(
            RunSpec(app=app, data=str(folder), queue=KafkaTarget.parse(self.queue), kind=kind, edge=config,
                    analyze=AnalyzeConfig()), self.spec,
        )  # fmt: skip
        self._errors = folder / "edge.err"
        self._handles = handles
        self._words = words
        self._edge: subprocess.Popen[bytes] | None = None
        self.start_edge()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        """What the edge wrote to its log."""
        return self._errors.read_text()

    @property
    def resident_bytes(self) -> int:
        assert self._edge is not None
        return int(Path(f"/proc/{self._edge.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def start_edge(self) -> None:
        limit = ["prlimit", f"--nofile={self._handles}"] if self._handles else []
        with self._errors.open("ab") as errors:
            self._edge = subprocess.Popen(
                [*limit, sys.executable, "-m", "penstock.edge", str(self.spec), *self._words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        word = "listening" if CHECKED_FIRST in self._words else "ready"
        assert self.next_line().startswith(f"{word} {self.url}"), self.said

    def next_line(self) -> str:
        """The next line that the edge prints."""
        assert self._edge is not None
        assert self._edge.stdout is not None
        return self._edge.stdout.readline().decode()

    def tell_edge(self) -> None:
        """Say something to the edge, as the supervisor does."""
        assert self._edge is not None
        assert self._edge.stdin is not None
        self._edge.stdin.write(b"open\n")
        self._edge.stdin.flush()

    def end_edge(self, number: int = signal.SIGKILL) -> int:
        """Send a signal and wait for the end; the exit status."""
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
        self.end_edge()
        self.broker.kill()
        if self._of_others:
            kinds: Any = importlib.import_module("confluent_kafka.admin")
            client = kinds.AdminClient({"bootstrap.servers": self.queue, "log_level": 0})
            for deleted in client.delete_topics(self._of_others).values():
                deleted.result(DEADLINE_S)

    def ask(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        """One request on a connection of its own; a body that is no bytes is sent as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        given = dict(headers or {})
        if data is not None and "content-type" not in map(str.lower, given):
            given["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            text = answer.read()
            named = {name.lower(): value for name, value in answer.getheaders()}
            is_json = "json" in named.get("content-type", "")
            found = Answer(answer.status, json.loads(text) if is_json else text.decode(), named)
            if path != "/ready" and method != "HEAD":
                check_kind(found)
            return found
        finally:
            connection.close()

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """POST; headers are named with _ for -."""
        return self.ask("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, None, headers)

    def metric(self, name: str) -> int:
        """One number of /metrics; 0 if it is not there."""
        text: str = self.get("/metrics").json
        found = re.search(rf"^penstock_edge_{re.escape(name)} (\d+)$", text, re.MULTILINE)
        return int(found[1]) if found else 0

    def alter(self, topic: str, setting: str, value: str) -> None:
        """Change a setting of a topic, as an operator does."""
        kinds: Any = importlib.import_module("confluent_kafka.admin")
        entry = kinds.ConfigEntry(setting, value, incremental_operation=kinds.AlterConfigOpType.SET)
        resource = kinds.ConfigResource(kinds.ResourceType.TOPIC, topic, incremental_configs=[entry])
        client = kinds.AdminClient({"bootstrap.servers": self.queue, "log_level": 0})
        client.incremental_alter_configs([resource])[resource].result(DEADLINE_S)

    def stored(self, topic: str, partitions: int = 2) -> list[Record]:
        """Everything that a topic holds."""
        consumer: Any = Consumer(
            {"bootstrap.servers": self.queue, "group.id": "reader", "enable.partition.eof": True,
             "enable.auto.commit": False, "log_level": 0}
        )  # fmt: skip
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        records: list[Record] = []
        ended: set[int] = set()
        while len(ended) < partitions:
            for message in consumer.consume(1000, 0.02):
                if message.error() is None:
                    records.append(record_of(message))
                else:
                    ended.add(message.partition())
        consumer.close()
        return records


class Query:
    """Stands in for a query: reads a topic, writes results and positions as the contract says."""

    def __init__(
        self,
        queue: str,
        name: str,
        reads: str,
        writes: str,
        partitions: int = 2,
        *,
        is_exactly_once: bool = False,
        keeps_event: bool = True,
        app: str = "shop",
    ) -> None:
        self.name = name
        self.app = app
        self.reads = reads
        self.writes = writes
        self.is_reporting = True
        self._keeps_event = keeps_event
        self.drops: set[str] = set()
        self._consumer: Any = Consumer(
            {"bootstrap.servers": queue, "group.id": "query", "enable.auto.commit": False, "log_level": 0,
             "fetch.wait.max.ms": 10}
        )  # fmt: skip
        self._consumer.assign([TopicPartition(reads, number, 0) for number in range(partitions)])
        self._producer: Any = Producer({"bootstrap.servers": queue, "linger.ms": 0, "log_level": 0})
        self._results = self._producer
        if is_exactly_once:
            self._results = Producer({"bootstrap.servers": queue, "transactional.id": name, "log_level": 0})
            self._results.init_transactions(DEADLINE_S)
        self._positions: dict[str, int] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            for message in self._consumer.consume(100, 0.05):
                if message.error() is None:
                    self._answer(record_of(message))
            if self.is_reporting:
                self.report()

    def _answer(self, record: Record) -> None:
        id = record.header("penstock-id") or b""
        self._positions[str(record.partition)] = record.offset + 1
        if id.decode() in self.drops:
            return
        place = f"{record.topic}/{record.partition}/{record.offset}".encode()
        value = b'{"id":"%s","decision":"approved","by":"%s"}' % (id, self.name.encode())
        headers = [("penstock-id", id), ("penstock-source", place), ("penstock-query", self.name.encode())]
        if self._results is self._producer:
            self._results.produce(self.writes, value, record.key, headers=headers)
            self._results.flush(DEADLINE_S)
        else:
            self._results.begin_transaction()
            self._results.produce(self.writes, value, record.key, headers=headers)
            self._results.commit_transaction(DEADLINE_S)

    def report(self) -> None:
        """Tell up to where everything was read and written."""
        said = {"app": self.app, "query": self.name, "state": "running", "positions": {self.reads: self._positions}}
        said |= {"keeps_event": self._keeps_event, "at_ms": time.time_ns() // 1_000_000}
        self._producer.produce("penstock.queries", json.dumps(said).encode(), self.name.encode())
        self._producer.flush(DEADLINE_S)

    def close(self, *, keeps_event: bool | None = None) -> None:
        """End; with a last word on whether it keeps `_event`, for the next of its name."""
        self._ending.set()
        self._thread.join(DEADLINE_S)
        if keeps_event is not None:
            self._keeps_event = keeps_event
            self.report()
        self._consumer.close()
