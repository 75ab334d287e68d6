"""Topics of text, bytes and CSV, read and written; a function with several outputs."""

from __future__ import annotations

import json
from pathlib import Path

from driving.analyze import Analyze
from driving.records import read, send

from penstock.drills.broker_process import BrokerProcess


def test_records_need_not_be_json_and_a_function_may_write_several_topics(broker: BrokerProcess, folder: Path) -> None:
    queue = broker.address
    with Analyze("formats.py", queue, folder / "formats") as analyze:
        send(queue, "lines", ["grüße".encode(), b"\xff", b'{"a": 1}'])
        send(queue, "blobs", [b"\x00\xff", None])
        send(queue, "readings", [b"a,31.5,2026-01-01T00:00:00Z", b"b,-2,", b"c,warm,", b",40,", b'"d,e",50,'])
        shouts = read(queue, "shouts", lambda found: len(found) >= 2)
        assert sorted(record.value or b"" for record in shouts) == sorted(["GRÜSSE".encode(), b'{"A": 1}'])
        (copy,) = read(queue, "copies", lambda found: len(found) >= 1)
        assert (copy.value, copy.headers["penstock-id"]) == (b"\x00\xff", "blobs/0/0")
        hot = read(queue, "hot", lambda found: len(found) >= 2)
        assert [(record.key, record.value) for record in hot] == [
            ("a", b"a,31.5,2026-01-01T00:00:00.000000Z"), ("d,e", b'"d,e",50.0,'),
        ]  # fmt: skip
        assert {record.headers["penstock-query"] for record in hot} == {"by_warmth.hot"}
        (cold,) = read(queue, "cold", lambda found: len(found) >= 1)
        assert json.loads(cold.value or b"") == {"sensor": "b", "celsius": -2.0, "at": None}
        dead = read(queue, "readings.dead", lambda found: len(found) >= 2)
        assert sorted(record.value or b"" for record in dead) == [b",40,", b"c,warm,"]
        (text,) = read(queue, "lines.dead", lambda found: len(found) >= 1)
        assert text.value == b"\xff"
        (empty,) = read(queue, "blobs.dead", lambda found: len(found) >= 1)
        assert empty.headers["penstock-reason"] == "there is no value"
        assert analyze.stop() == 0
