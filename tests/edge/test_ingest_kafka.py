"""The same edge before Apache Kafka: it refuses what Kafka would, and stores what Kafka takes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, Producer

from penstock.kafka.records.size import batch_size
from proof.oracle.kafka import KafkaNode
from tests.edge.edge_stage import DEADLINE_S, EdgeStage

LIMIT = 2_000


def test_kafka_counts_a_batch_as_we_do(kafka_node: KafkaNode) -> None:
    """A batch of max.message.bytes is taken; one byte more is not."""
    admin: Any = importlib.import_module("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": kafka_node.address, "log_level": 0})
    topic = admin.NewTopic("counted", 1, config={"max.message.bytes": str(LIMIT)})
    client.create_topics([topic])["counted"].result(DEADLINE_S)
    producer = Producer({"bootstrap.servers": kafka_node.address, "log_level": 0})
    errors: list[KafkaError | None] = []
    headers = [("penstock-id", b"x"), ("more", b"y" * 200)]
    value = b"x" * (LIMIT - batch_size(b"key", b"", headers) - 1)
    assert batch_size(b"key", value, headers) == LIMIT
    for sent in (value, value + b"x"):
        producer.produce("counted", sent, b"key", headers=headers, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(DEADLINE_S) == 0
    taken, refused = errors
    assert taken is None
    assert refused is not None
    assert refused.name() == "MSG_SIZE_TOO_LARGE"


def test_an_array_before_a_topic_with_a_small_limit(tmp_path: Path, kafka_node: KafkaNode) -> None:
    """Events that fit one by one are stored; one that does not is refused with its number, and nothing is sent."""
    stage = EdgeStage(tmp_path, kafka=kafka_node.address)
    try:
        stage.end_edge()
        stage.alter("purchases", "max.message.bytes", str(LIMIT))
        stage.start_edge()
        events = [{"id": f"kafka-{number}", "card": "1", "pad": "x" * (number % 1_500)} for number in range(300)]
        answer = stage.post("/ingest/purchases", [*events, {"id": "large", "pad": "x" * LIMIT}])
        assert (answer.status, answer.json["event"]) == (413, 300)
        assert not stage.stored("purchases")
        assert stage.post("/ingest/purchases", events).status == 202
        assert len(stage.stored("purchases")) == 300
    finally:
        stage.close()
