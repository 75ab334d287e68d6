"""Reading from where a client wants to: by time, by offset, from either end, behind deleted records."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka  # type: ignore[import-untyped]  # ships no types
import pytest
from asking.batches import NOW_MS
from asking.clients import CODECS, kafka
from asking.connection import DEADLINE_S, Connection
from asking.java import run_java
from asking.requests import create_topic
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import admin as typed_admin

from penstock.kafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

admin: Any = typed_admin  # its types leave out half of what it offers
COUNT = 5
FIRST_MS = NOW_MS - 60_000
STEP_MS = 1_000


def write(address: str, topic: str, codec: str) -> None:
    """One batch of records a second apart, the latest time not last."""
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 500})
    for number in [*range(COUNT - 2), COUNT - 1, COUNT - 2]:
        producer.produce(topic, b"v" * 300, partition=0, timestamp=FIRST_MS + number * STEP_MS)
    assert producer.flush(DEADLINE_S) == 0


@pytest.fixture
def consumer(broker_address: str) -> Iterator[Consumer]:
    """Without a group: partitions are assigned by hand."""
    settings = {
        "bootstrap.servers": broker_address,
        "group.id": "unused",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
    }
    opened = Consumer(settings)
    yield opened
    opened.close()


def first_offset(consumer: Consumer, topic: str, start: int) -> int | None:
    """The offset of the first record that a reader gets that starts there."""
    consumer.assign([TopicPartition(topic, 0, start)])
    message = consumer.poll(DEADLINE_S)
    assert message is not None
    if (fault := message.error()) is not None:
        raise KafkaException(fault)
    return message.offset()


# Asked for a time, the offset of the first record at or after it: times and offsets of the batch above.
TIMES = [(0, 0), (500, 1), (1000, 1), (2000, 2), (2001, 3), (3000, 3), (4000, 3)]


@pytest.mark.parametrize("codec", CODECS)
def test_a_time_leads_to_the_exact_record_inside_a_batch(
    broker_address: str, consumer: Consumer, codec: str, topic: str
) -> None:
    """Not to the start of its batch, compressed or not."""
    with Connection(broker_address) as connection:
        create_topic(connection, topic)
    write(broker_address, topic, codec)
    for after_ms, expected in TIMES:
        wanted = [TopicPartition(topic, 0, FIRST_MS + after_ms)]
        (found,) = consumer.offsets_for_times(wanted, timeout=DEADLINE_S)
        assert found.offset == expected, after_ms
    (beyond,) = consumer.offsets_for_times([TopicPartition(topic, 0, NOW_MS)], timeout=DEADLINE_S)
    assert beyond.offset == OFFSET_END


@pytest.fixture
def written(broker_address: str, topic: str) -> str:
    with Connection(broker_address) as connection:
        create_topic(connection, topic)
    write(broker_address, topic, "gzip")
    return topic


def test_every_client_finds_the_same_offset_for_a_time(
    broker_address: str, written: str, need_tool: Callable[[str], str]
) -> None:
    """kafka-python, aiokafka, Java's GetOffsetShell and kcat, each in its own version of ListOffsets."""
    stamp, expected = FIRST_MS + 2001, 3
    partition = kafka.TopicPartition(written, 0)
    reader = kafka.KafkaConsumer(bootstrap_servers=broker_address)
    try:
        assert reader.offsets_for_times({partition: stamp})[partition].offset == expected
    finally:
        reader.close()

    async def by_aiokafka() -> int:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=broker_address)
        await consumer.start()
        try:
            aio_partition = aiokafka.TopicPartition(written, 0)
            found = await consumer.offsets_for_times({aio_partition: stamp})
            offset: int = found[aio_partition].offset
            return offset
        finally:
            await consumer.stop()

    assert asyncio.run(by_aiokafka()) == expected
    command = [need_tool("kcat"), "-b", broker_address, "-Q", "-t", f"{written}:0:{stamp}"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout
    assert said.split() == [written, "[0]", "offset", str(expected)]
    shell = ("--bootstrap-server", broker_address, "--topic", written, "--time", str(stamp))
    done = run_java("org.apache.kafka.tools.GetOffsetShell", *shell)
    assert done.stdout.split() == [f"{written}:0:{expected}"], done.stderr


def test_the_record_with_the_latest_time_is_found(broker_address: str, written: str) -> None:
    """It is not the last one; librdkafka's admin client asks for it by its own special time."""
    client = admin.AdminClient({"bootstrap.servers": broker_address})
    partition = TopicPartition(written, 0)
    asked = {partition: admin.OffsetSpec.max_timestamp()}
    found = client.list_offsets(asked, isolation_level=IsolationLevel.READ_UNCOMMITTED)[partition].result(DEADLINE_S)
    assert (found.offset, found.timestamp) == (3, FIRST_MS + 4 * STEP_MS)


def test_both_ends_are_where_they_should_be(consumer: Consumer, written: str) -> None:
    """Watermarks, the beginning, an offset in the middle of a batch."""
    assert consumer.get_watermark_offsets(TopicPartition(written, 0), timeout=DEADLINE_S) == (0, COUNT)
    assert first_offset(consumer, written, OFFSET_BEGINNING) == 0
    assert first_offset(consumer, written, 3) == 3


def test_from_the_end_only_what_comes_later_is_read(broker_address: str, written: str) -> None:
    """kafka-python's seeks: to the end, then a record is written, and it is the next one."""
    reader = kafka.KafkaConsumer(bootstrap_servers=broker_address, consumer_timeout_ms=int(DEADLINE_S * 1000))
    try:
        partition = kafka.TopicPartition(written, 0)
        reader.assign([partition])
        reader.seek_to_end(partition)
        assert reader.position(partition) == COUNT
        write(broker_address, written, "none")
        assert next(reader).offset == COUNT
        reader.seek_to_beginning(partition)
        assert reader.position(partition) == 0
    finally:
        reader.close()


def delete_records(address: str, topic: str, before: int) -> None:
    wanted = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=before)])
    with Connection(address) as connection:
        request = DeleteRecordsRequest(topics=[wanted], timeout_ms=10_000)
        assert connection.ask(request, 2, DeleteRecordsResponse).topics[0].partitions[0].error_code == 0


def test_a_reader_behind_deleted_records_is_told(broker_address: str, consumer: Consumer, written: str) -> None:
    """Out of range is an error for a client that wants to know, never a silent gap."""
    delete_records(broker_address, written, 2)
    with pytest.raises(KafkaException) as caught:
        first_offset(consumer, written, 0)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    assert first_offset(consumer, written, 2) == 2
    assert consumer.get_watermark_offsets(TopicPartition(written, 0), timeout=DEADLINE_S) == (2, COUNT)


def test_a_reader_that_resets_to_the_earliest_goes_on_there(broker_address: str, written: str) -> None:
    """auto.offset.reset=earliest, in aiokafka: the first record that is left is the next one, inside its batch."""
    delete_records(broker_address, written, 2)

    async def read() -> int:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=broker_address, auto_offset_reset="earliest")
        await consumer.start()
        try:
            partition = aiokafka.TopicPartition(written, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            message = await asyncio.wait_for(consumer.getone(), DEADLINE_S)
            offset: int = message.offset
            return offset
        finally:
            await consumer.stop()

    assert asyncio.run(read()) == 2


def test_a_reader_past_the_end_is_told(consumer: Consumer, written: str) -> None:
    """Nobody has written there yet, so that this offset was never given out."""
    with pytest.raises(KafkaException) as caught:
        first_offset(consumer, written, COUNT + 10)
    assert caught.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
