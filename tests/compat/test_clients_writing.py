"""Writing with real clients: large records, retries that do not double, every kind of acks, and refusals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiokafka  # type: ignore[import-untyped]  # ships no types
import pytest
from asking.clients import CLIENTS, Sample, client_by_name, kafka
from asking.connection import DEADLINE_S, Connection
from asking.requests import LATEST, create_topic, fetch, list_offset
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from penstock.kafka.records.batch import decode_header

LARGE = "0123456789abcdef" * 57_600  # 900 KiB, below the limit of 1 MiB that clients and brokers share


def confluent_write(address: str, topic: str, value: bytes, **settings: object) -> tuple[KafkaError | None, Message]:
    """Write one record; what the delivery report says."""
    told: list[tuple[KafkaError | None, Message]] = []
    producer = Producer({"bootstrap.servers": address, **settings})
    producer.produce(topic, value, on_delivery=lambda fault, message: told.append((fault, message)))
    assert producer.flush(DEADLINE_S) == 0
    return told[0]


@pytest.mark.parametrize("client", CLIENTS)
def test_large_records_pass_whole(
    broker_address: str, client: str, topic: str, need_tool: Callable[[str], str]
) -> None:
    """900 KiB in one record, by every client."""
    with Connection(broker_address) as connection:
        create_topic(connection, topic)
    writer = client_by_name(client, need_tool)
    writer.write(broker_address, topic, [Sample("large", LARGE)], "none")
    assert writer.read(broker_address, topic, 1) == [Sample("large", LARGE)]


def send_by_confluent(address: str, topic: str, acks: str) -> None:
    fault, _ = confluent_write(address, topic, b"v", acks=acks)
    assert fault is None


def send_by_kafka_python(address: str, topic: str, acks: str) -> None:
    how = acks if acks == "all" else int(acks)
    producer = kafka.KafkaProducer(bootstrap_servers=address, acks=how, enable_idempotence=False)
    try:
        producer.send(topic, b"v", partition=0).get(DEADLINE_S)
    finally:
        producer.close()


def send_by_aiokafka(address: str, topic: str, acks: str) -> None:
    async def work() -> None:
        how = acks if acks == "all" else int(acks)
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, acks=how)
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"v", partition=0)
        finally:
            await producer.stop()

    asyncio.run(work())


SENDERS = {"confluent": send_by_confluent, "kafka-python": send_by_kafka_python, "aiokafka": send_by_aiokafka}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("client", SENDERS)
def test_every_kind_of_acks_stores_the_record(broker_address: str, client: str, acks: str, topic: str) -> None:
    """With 0 nobody is told, and it is stored all the same."""
    with Connection(broker_address) as connection:
        create_topic(connection, topic)
        SENDERS[client](broker_address, topic, acks)
        deadline = time.monotonic() + DEADLINE_S
        while list_offset(connection, topic, LATEST) != (0, -1, 1):
            assert time.monotonic() < deadline


def idempotent_confluent(address: str, topic: str) -> None:
    confluent_write(address, topic, b"v", **{"enable.idempotence": True})


def idempotent_kafka_python(address: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=address, enable_idempotence=True)
    try:
        producer.send(topic, b"v", partition=0).get(DEADLINE_S)
    finally:
        producer.close()


def idempotent_aiokafka(address: str, topic: str) -> None:
    async def work() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True)
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"v", partition=0)
        finally:
            await producer.stop()

    asyncio.run(work())


def idempotent_java(address: str, topic: str) -> None:
    client_by_name("java", str).write(address, topic, [Sample(None, "v")], "none")


IDEMPOTENT = {
    "confluent": idempotent_confluent,
    "kafka-python": idempotent_kafka_python,
    "aiokafka": idempotent_aiokafka,
    "java": idempotent_java,
}


@pytest.mark.parametrize("client", IDEMPOTENT)
def test_idempotent_producers_get_an_id_and_count_from_zero(broker_address: str, client: str, topic: str) -> None:
    """The stored batch carries id, epoch and sequence; Java's producer is idempotent without being asked."""
    with Connection(broker_address) as connection:
        create_topic(connection, topic)
        IDEMPOTENT[client](broker_address, topic)
        records = fetch(connection, topic, 0).records
    assert records is not None
    header = decode_header(records)
    assert header.producer_id >= 0
    assert (header.producer_epoch, header.base_sequence) == (0, 0)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_topic_is_made_by_writing_to_it(
    broker_address: str, client: str, topic: str, need_tool: Callable[[str], str]
) -> None:
    """As with Kafka's default, whatever client asks for its metadata first."""
    client_by_name(client, need_tool).write(broker_address, topic, [Sample("k", "v")], "none")
    with Connection(broker_address) as connection:
        assert list_offset(connection, topic, LATEST) == (0, -1, 1)


def test_log_append_time_is_the_brokers(broker_address: str, topic: str) -> None:
    """The producer's time is overwritten, and both the writer and a reader are told the broker's."""
    before_ms = int(time.time() * 1000) - 1000
    with Connection(broker_address) as connection:
        create_topic(connection, topic, configs={"message.timestamp.type": "LogAppendTime"})
    producer = Producer({"bootstrap.servers": broker_address, "compression.type": "zstd"})
    producer.produce(topic, b"v" * 500, partition=0, timestamp=1_000)
    assert producer.flush(DEADLINE_S) == 0
    settings = {"bootstrap.servers": broker_address, "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({**settings, "check.crcs": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        kind, stamp = message.timestamp()
        assert kind == 2  # log append time
        assert before_ms <= stamp <= int(time.time() * 1000) + 1000
        (found,) = consumer.offsets_for_times([TopicPartition(topic, 0, before_ms)], timeout=DEADLINE_S)
        assert found.offset == 0
    finally:
        consumer.close()


def test_a_batch_over_the_topics_limit_is_refused(broker_address: str, topic: str) -> None:
    """max.message.bytes counts for the topic, not what the client believes."""
    with Connection(broker_address) as connection:
        create_topic(connection, topic, configs={"max.message.bytes": "2000"})
    fault, _ = confluent_write(broker_address, topic, b"v" * 3000)
    assert fault is not None
    assert fault.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert confluent_write(broker_address, topic, b"v" * 1000)[0] is None


@pytest.mark.parametrize("name", ["../../x", ".", "x" * 250, "with space"])
def test_a_topic_that_cannot_be_named_so_is_refused(broker_address: str, name: str) -> None:
    """The client learns it from the metadata, and nothing is made."""
    fault, _ = confluent_write(broker_address, name, b"v")
    assert fault is not None
    assert fault.code() in {KafkaError.TOPIC_EXCEPTION, KafkaError._UNKNOWN_TOPIC}


def test_a_reader_does_not_make_a_topic(broker_address: str, topic: str) -> None:
    """librdkafka's consumer asks for metadata without creation, and is told that there is nothing."""
    consumer = Consumer({"bootstrap.servers": broker_address, "group.id": "unused"})
    try:
        for _ in range(2):
            fault = consumer.list_topics(topic, timeout=DEADLINE_S).topics[topic].error
            assert fault is not None
            assert fault.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    finally:
        consumer.close()
