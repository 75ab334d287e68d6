"""The oracle itself works: a real Apache Kafka, from pinned jars, on the Java that is there."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from penstock.errors import PenstockError
from penstock.jvm.java import wheel_java
from proof.oracle.kafka import KafkaNode, run_tool

DEADLINE_S = 30.0


def produce(address: str, topic: str, value: bytes) -> None:
    faults: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": address})
    producer.produce(topic, value, on_delivery=lambda fault, _: faults.append(fault))
    assert producer.flush(DEADLINE_S) == 0
    assert faults == [None]


def consume(address: str, topic: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()


def test_a_record_goes_through_a_real_kafka_and_back(kafka_node: KafkaNode) -> None:
    """What confluent-kafka produces, it consumes."""
    produce(kafka_node.address, "round-trip", b"one drop")
    assert consume(kafka_node.address, "round-trip") == b"one drop"


def test_kafkas_own_tools_run_from_the_same_jars(kafka_node: KafkaNode) -> None:
    """Console producer and consumer, and the reader of segment files, are there for other tests."""
    at = ("--bootstrap-server", kafka_node.address, "--topic", "console")
    written = run_tool("org.apache.kafka.tools.ConsoleProducer", *at, input="one drop\n")
    assert written.returncode == 0, written.stderr
    reading = ("--from-beginning", "--max-messages", "1", "--timeout-ms", "30000")
    read = run_tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *at, *reading)
    assert read.stdout == "one drop\n", read.stderr
    segment = kafka_node.log_folder / "console-0" / f"{0:020}.log"
    dump = run_tool("org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--files", str(segment))
    assert "payload: one drop" in dump.stdout, dump.stderr


def test_kcat_reads_from_it(kafka_node: KafkaNode, need_tool: Callable[[str], str]) -> None:
    """The node names itself to a client that knows nothing but the address."""
    command = [need_tool("kcat"), "-b", kafka_node.address, "-L"]
    listing = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert f"broker 1 at {kafka_node.address}" in listing.stdout


def test_it_keeps_its_data_and_address_over_a_kill_on_the_wheels_java(tmp_path: Path) -> None:
    """A node killed with -9 comes back as itself, on the Java that pip installs."""
    # The controller takes the killed broker for alive until its session ends: do not wait Kafka's 9 s.
    quick = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}
    with KafkaNode(tmp_path, settings=quick, heap="512m", java=wheel_java()) as node:
        address = node.address
        produce(address, "kept", b"one drop")
        # Kafka acknowledges before it syncs, but a killed process loses nothing that it wrote.
        node.kill()
        node.start()
        assert node.address == address
        assert consume(address, "kept") == b"one drop"


def test_settings_that_kafka_refuses_are_an_error_in_its_words(tmp_path: Path) -> None:
    """A typo in a test's settings is told, not waited for."""
    with pytest.raises(PenstockError, match=r"process\.roles"):
        KafkaNode(tmp_path, settings={"process.roles": "x"}).start()
