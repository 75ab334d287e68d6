"""The same app on a real Apache Kafka."""

from __future__ import annotations

from pathlib import Path

from driving.analyze import Analyze
from driving.records import read, send

from penstock.guarantee import Queue
from proof.oracle.kafka import KafkaNode


def test_queries_cannot_tell_apache_kafka_from_our_broker(kafka_node: KafkaNode, folder: Path) -> None:
    """Results, dead letters and status, as on our own broker."""
    queue = kafka_node.address
    with Analyze("counting.py", queue, folder / "data", Queue("kafka", 1)) as analyze:
        send(queue, "numbers", [*({"id": f"n{n}", "card": "one", "n": n} for n in range(50)), b"?"])
        copies = read(queue, "copies", lambda found: len(found) >= 50)
        assert {record.json["id"] for record in copies} == {f"n{n}" for n in range(50)}
        totals = read(queue, "totals", lambda found: bool(found) and found[-1].json["events"] == 50)
        assert totals[-1].json == {"card": "one", "total": sum(range(50)), "events": 50}
        (letter, *_) = read(queue, "numbers.dead", lambda found: len(found) >= 1)
        assert letter.value == b"?"
        read(queue, "penstock.queries", lambda found: any(r.json["state"] == "running" for r in found))
        assert analyze.stop() == 0
