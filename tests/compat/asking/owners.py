"""Owners of transactions behind one face, and readers of both kinds."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

import aiokafka  # type: ignore[import-untyped]  # ships no types
import confluent_kafka

from asking.clients import kafka
from asking.connection import DEADLINE_S

ANSWER_S = 60.0


class ClientOwner(Protocol):
    """One transactional producer of a client library."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        """Write one record and wait until it is acknowledged."""

    def send_offset(self, topic: str, offset: int, group: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class ConfluentOwner:
    def __init__(self, address: str, name: str) -> None:
        self._client = confluent_kafka.Producer(
            {"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0, "log_level": 0}
        )
        self._address = address
        self._client.init_transactions(ANSWER_S)

    def begin(self) -> None:
        self._client.begin_transaction()

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        faults: list[Any] = []
        self._client.produce(topic, value.encode(), partition=partition, on_delivery=lambda err, _: faults.append(err))
        self._client.flush(ANSWER_S)
        if faults != [None]:
            raise confluent_kafka.KafkaException(*faults)

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        position = confluent_kafka.TopicPartition(topic, 0, offset)
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self._address, "group.id": group})
        try:
            metadata = consumer.consumer_group_metadata()
            self._client.send_offsets_to_transaction([position], metadata, ANSWER_S)
        finally:
            consumer.close()

    def commit(self) -> None:
        self._client.commit_transaction(ANSWER_S)

    def abort(self) -> None:
        self._client.abort_transaction(ANSWER_S)

    def close(self) -> None:
        self._client.purge()


class KafkaPythonOwner:
    def __init__(self, address: str, name: str) -> None:
        self._client = kafka.KafkaProducer(bootstrap_servers=address, transactional_id=name, linger_ms=0)
        self._client.init_transactions()

    def begin(self) -> None:
        self._client.begin_transaction()

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        self._client.send(topic, value.encode(), partition=partition).get(ANSWER_S)

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        offsets = {kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)}
        self._client.send_offsets_to_transaction(offsets, group)

    def commit(self) -> None:
        self._client.commit_transaction()

    def abort(self) -> None:
        self._client.abort_transaction()

    def close(self) -> None:
        self._client.close(timeout=0)


class AiokafkaOwner:
    def __init__(self, address: str, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._client = self._run(self._start(address, name))

    async def _start(self, address: str, name: str) -> Any:
        client = aiokafka.AIOKafkaProducer(bootstrap_servers=address, transactional_id=name)
        await client.start()
        return client

    def _run(self, doing: Any) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(doing, ANSWER_S))

    def begin(self) -> None:
        self._run(self._client.begin_transaction())

    def send(self, topic: str, value: str, partition: int = 0) -> None:
        self._run(self._client.send_and_wait(topic, value.encode(), partition=partition))

    def send_offset(self, topic: str, offset: int, group: str) -> None:
        self._run(self._client.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): offset}, group))

    def commit(self) -> None:
        self._run(self._client.commit_transaction())

    def abort(self) -> None:
        self._run(self._client.abort_transaction())

    def close(self) -> None:
        self._run(self._client.stop())
        self._loop.close()


OWNERS: dict[str, type[Any]] = {
    "confluent-kafka": ConfluentOwner,
    "kafka-python": KafkaPythonOwner,
    "aiokafka": AiokafkaOwner,
}


def read_values(address: str, topic: str, count: int, *, committed: bool, partition: int = 0) -> list[str]:
    """The first `count` values of a partition that a reader of this kind is given."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "nobody",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)])
    found: list[str] = []
    deadline = time.monotonic() + DEADLINE_S
    try:
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


def committed_offset(address: str, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    try:
        (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], ANSWER_S)
        return int(found.offset)
    finally:
        consumer.close()
