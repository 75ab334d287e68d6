"""Our segment files are Kafka's: its own tool reads them."""

from __future__ import annotations

import base64
import re
from uuid import UUID, uuid4

from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from penstock.drills.broker_process import BrokerProcess
from proof.oracle.tools import run_tool


def test_kafkas_dump_tool_reads_our_segments(penstock_node: BrokerProcess) -> None:
    """Every record at its offset, every checksum right, in a file that our broker wrote."""
    topic = f"dumped-{uuid4().hex}"
    settings = {"bootstrap.servers": penstock_node.address}
    producer = Producer({**settings, "compression.type": "zstd"})
    for number in range(300):
        producer.produce(topic, value=f"value-{number}".encode(), key=b"key", partition=0)
        if number % 100 == 99:
            assert producer.flush(60) == 0

    admin = AdminClient(settings)
    described = admin.describe_topics(TopicCollection([topic]))[topic].result()
    topic_id = UUID(bytes=base64.b64decode(str(described.topic_id).replace("-", "+").replace("_", "/") + "=="))
    segment = penstock_node.data / "topics" / str(topic_id) / "0" / "00000000000000000000.log"
    dumped = run_tool(
        "org.apache.kafka.tools.DumpLogSegments", "--files", str(segment), "--print-data-log", timeout=120
    )
    offsets = [int(offset) for offset in re.findall(r"\| offset: (\d+)", dumped.stdout)]
    assert offsets == list(range(300)), dumped.stdout[-2000:] + dumped.stderr[-2000:]
    assert re.findall(r"isvalid: (\w+)", dumped.stdout.lower()).count("true") >= 3
    assert "isvalid: false" not in dumped.stdout.lower()
