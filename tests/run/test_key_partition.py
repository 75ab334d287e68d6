"""A key has one partition, whatever writes it: HTTP, queries of each guarantee, and `penstock produce`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic

WITHIN_S = 240.0
KEYS = [f"card-{number}" for number in range(24)]
TOPICS = ("purchases", "repeated", "once", "produced")
APP = """
from penstock import App, Guarantee, sources

keyed = App("keyed")
purchases = keyed.topic("purchases", schema="card STRING NOT NULL", key="card", identity="card", partitions=5)
keyed.topic("repeated", schema="card STRING", key="card", partitions=5)
keyed.topic("once", schema="card STRING", key="card", partitions=5, guarantee=Guarantee(delivery="exactly-once"))
keyed.topic("produced", schema="card STRING", key="card", partitions=5)
keyed.ingest(sources.Http(), into=purchases)

@keyed.query(reads=purchases, writes="repeated")
def at_least_once(rows): return rows.select("card", "_event")

@keyed.query(reads=purchases, writes="once")
def exactly_once(rows): return rows.select("card", "_event")
"""


def partitions(queue: str, topic: str) -> dict[str, int]:
    """The partition of each key."""
    found: dict[str, int] = {}
    for record in read_topic(queue, topic):
        key = (record.key or b"").decode()
        assert found.setdefault(key, record.partition) == record.partition, f"{key} has two partitions in {topic}"
    return found


def test_a_key_has_one_partition_whatever_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "keyed.py"
    file.write_text(APP)
    with AppProcess(str(file), tmp_path) as app:
        connection = HTTPConnection("127.0.0.1", app.port, timeout=40)
        body = json.dumps([{"card": key} for key in KEYS])
        connection.request("POST", "/ingest/purchases", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 202
        connection.close()
        lines = "".join(f"{key}|{{}}\n" for key in KEYS)
        words = ["produce", "produced", "--key-separator", "|", "--broker", app.queue]
        command = [sys.executable, "-m", "penstock", *words]
        subprocess.run(command, input=lines, text=True, check=True, timeout=120)
        deadline = time.monotonic() + WITHIN_S
        while set(KEYS) != partitions(app.queue, "repeated").keys() & partitions(app.queue, "once").keys():
            assert time.monotonic() < deadline, app.said
        found = {topic: partitions(app.queue, topic) for topic in TOPICS}
        assert app.stop() == 0
    assert len(set(found["purchases"].values())) > 1
    for topic in TOPICS:
        assert found[topic] == found["purchases"], topic
