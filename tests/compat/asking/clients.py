"""Five real clients behind one face: write some records, read a partition."""

from __future__ import annotations

import asyncio
import json
import subprocess
import warnings
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, Protocol

import aiokafka  # type: ignore[import-untyped]  # ships no types
import confluent_kafka

from asking.connection import DEADLINE_S
from asking.java import run_java

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by a call that Python is giving up
    import kafka  # type: ignore[import-untyped]  # ships no types

__all__ = ["CLIENTS", "CODECS", "Client", "Sample", "client_by_name", "kafka"]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Sample(NamedTuple):
    """What a client writes, and what another one reads; text, so that console tools can say it."""

    key: str | None
    value: str | None
    headers: tuple[tuple[str, str], ...] = ()


class Client(Protocol):
    """A client that writes to and reads from partition 0."""

    writes_empty_values: bool

    def write(self, address: str, topic: str, samples: Sequence[Sample], codec: str) -> None:
        """Write the samples; returns when all are acknowledged."""

    def read(self, address: str, topic: str, count: int, offset: int = 0) -> list[Sample]:
        """Read so many from this offset on, without a group."""


class Confluent:
    """librdkafka, as Penstock itself uses it."""

    writes_empty_values = True

    def write(self, address: str, topic: str, samples: Sequence[Sample], codec: str) -> None:
        faults: list[object] = []
        settings = {"bootstrap.servers": address, "compression.type": codec, "linger.ms": 50, "acks": "all"}
        producer = confluent_kafka.Producer(settings)
        for sample in samples:
            producer.produce(
                topic,
                value=sample.value,
                key=sample.key,
                headers=list(sample.headers),
                partition=0,
                on_delivery=lambda fault, _: faults.append(fault),
            )
        assert producer.flush(DEADLINE_S) == 0
        assert faults == [None] * len(samples)

    def read(self, address: str, topic: str, count: int, offset: int = 0) -> list[Sample]:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False, "check.crcs": True}
        )
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
            found: list[Sample] = []
            while len(found) < count:
                message = consumer.poll(DEADLINE_S)
                assert message is not None, f"{len(found)} of {count} records came"
                assert message.error() is None, message.error()
                found.append(_sample(message.key(), message.value(), list(message.headers() or ())))
            return found
        finally:
            consumer.close()


class KafkaPython:
    """kafka-python, pure Python."""

    writes_empty_values = True

    def write(self, address: str, topic: str, samples: Sequence[Sample], codec: str) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=address, compression_type=None if codec == "none" else codec, linger_ms=50, acks="all"
        )
        try:
            sent = [
                producer.send(topic, _bytes(s.value), _bytes(s.key), [(k, v.encode()) for k, v in s.headers], 0)
                for s in samples
            ]
            for future in sent:
                future.get(DEADLINE_S)
        finally:
            producer.close()

    def read(self, address: str, topic: str, count: int, offset: int = 0) -> list[Sample]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=address, enable_auto_commit=False, consumer_timeout_ms=int(DEADLINE_S * 1000)
        )
        try:
            partition = kafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            consumer.seek(partition, offset)
            found = []
            for message in consumer:
                found.append(_sample(message.key, message.value, message.headers))
                if len(found) == count:
                    break
            return found
        finally:
            consumer.close()


class Aiokafka:
    """aiokafka, on asyncio."""

    writes_empty_values = True

    def write(self, address: str, topic: str, samples: Sequence[Sample], codec: str) -> None:
        async def work() -> None:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=address, compression_type=None if codec == "none" else codec, linger_ms=50, acks="all"
            )
            await producer.start()
            try:
                sent = [
                    await producer.send(
                        topic, _bytes(s.value), _bytes(s.key), 0, headers=[(k, v.encode()) for k, v in s.headers]
                    )
                    for s in samples
                ]
                await asyncio.gather(*sent)
            finally:
                await producer.stop()

        _run(work)

    def read(self, address: str, topic: str, count: int, offset: int = 0) -> list[Sample]:
        async def work() -> list[Sample]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
            await consumer.start()
            try:
                partition = aiokafka.TopicPartition(topic, 0)
                consumer.assign([partition])
                consumer.seek(partition, offset)
                messages = [await consumer.getone() for _ in range(count)]
                return [_sample(m.key, m.value, m.headers) for m in messages]
            finally:
                await consumer.stop()

        found: list[Sample] = _run(work)
        return found


class JavaConsole:
    """Kafka's own console producer and consumer, on its Java client."""

    writes_empty_values = True

    def write(self, address: str, topic: str, samples: Sequence[Sample], codec: str) -> None:
        options = [
            f"--reader-property={option}" for option in ("parse.key=true", "parse.headers=true", "null.marker=NULL")
        ]
        rows = ["\t".join((_java_headers(s), _text(s.key, "NULL"), _text(s.value, "NULL"))) + "\n" for s in samples]
        done = run_java(
            "org.apache.kafka.tools.ConsoleProducer",
            *("--bootstrap-server", address, "--topic", topic, "--compression-codec", codec, *options),
            input="".join(rows),
        )
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stderr, done.stderr

    def read(self, address: str, topic: str, count: int, offset: int = 0) -> list[Sample]:
        shown = ("print.headers=true", "print.key=true", "null.literal=NULL", "headers.separator=,")
        done = run_java(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", address, "--topic", topic, "--partition", "0", "--offset", str(offset)),
            *("--max-messages", str(count), "--timeout-ms", str(int(DEADLINE_S * 1000))),
            *(f"--formatter-property={option}" for option in shown),
        )
        assert done.returncode == 0, done.stderr
        return [_java_sample(line) for line in done.stdout.splitlines()]


class Kcat:
    """kcat, on an older librdkafka."""

    writes_empty_values = False  # its -Z makes every empty field null

    def __init__(self, program: str) -> None:
        self._program = program

    def write(self, address: str, topic: str, samples: Sequence[Sample], codec: str) -> None:
        # It has one set of headers for a run, so that each set is a run of its own.
        groups: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
        for sample in samples:
            groups.setdefault(sample.headers, []).append(sample)
        for headers, group in groups.items():
            given = [part for name, value in headers for part in ("-H", f"{name}={value}")]
            rows = "".join(f"{_text(s.key, '')}\t{_text(s.value, '')}\n" for s in group)
            self._run("-P", "-b", address, "-t", topic, "-p", "0", "-z", codec, "-Z", "-K", "\t", *given, input=rows)

    def read(self, address: str, topic: str, count: int, offset: int = 0) -> list[Sample]:
        out = self._run("-C", "-b", address, "-t", topic, "-p", "0", "-o", str(offset), "-c", str(count), "-J")
        rows = [json.loads(line) for line in out.splitlines()]
        return [Sample(row["key"], row["payload"], _pairs(row.get("headers", []))) for row in rows]

    def _run(self, *args: str, input: str = "") -> str:
        command = [self._program, "-X", "topic.request.required.acks=-1", *args]
        if "-C" in args:
            command = [self._program, *args]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def client_by_name(name: str, need_tool: Callable[[str], str]) -> Client:
    if name == "kcat":
        return Kcat(need_tool("kcat"))
    made: dict[str, Callable[[], Client]] = {
        "confluent": Confluent,
        "kafka-python": KafkaPython,
        "aiokafka": Aiokafka,
        "java": JavaConsole,
    }
    return made[name]()


CLIENTS = ("confluent", "kafka-python", "aiokafka", "java", "kcat")


def _run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work(), DEADLINE_S * 2)

    return asyncio.run(bounded())


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _text(text: str | None, null: str) -> str:
    return null if text is None else text


def _sample(key: Any, value: Any, headers: Sequence[Any]) -> Sample:
    return Sample(
        None if key is None else key.decode(),
        None if value is None else value.decode(),
        tuple((name, (raw or b"").decode()) for name, raw in headers),
    )


def _pairs(flat: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _java_headers(sample: Sample) -> str:
    return ",".join(f"{name}:{value}" for name, value in sample.headers) or "NULL"


def _java_sample(line: str) -> Sample:
    headers, key, value = line.split("\t")
    pairs = () if headers == "NO_HEADERS" else tuple(pair.split(":", 1) for pair in headers.split(","))
    return Sample(
        None if key == "NULL" else key,
        None if value == "NULL" else value,
        tuple((name, text) for name, text in pairs),
    )
