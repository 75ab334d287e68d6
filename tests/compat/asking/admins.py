"""Admin clients behind one face: topics, settings, the start of a log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from aiokafka import TopicPartition as AioPartition  # type: ignore[import-untyped]  # ships no types
from aiokafka import admin as aio
from confluent_kafka import TopicPartition
from confluent_kafka import admin as typed_confluent

from asking.clients import kafka
from asking.connection import DEADLINE_S
from asking.java import run_java

confluent: Any = typed_confluent  # its types leave out half of what it offers
kafka_python = kafka.admin


class Admin(Protocol):
    """What an operator does to topics; `setting` is one of its settings."""

    alters_settings: bool

    def create(self, topic: str, partitions: int, retention_ms: int) -> None: ...
    def partitions(self, topic: str) -> int: ...
    def grow(self, topic: str, partitions: int) -> None: ...
    def setting(self, topic: str, name: str) -> str | None: ...
    def alter(self, topic: str, name: str, value: str) -> None: ...
    def delete_records(self, topic: str, before: int) -> None: ...
    def delete(self, topic: str) -> None: ...
    def topics(self) -> set[str]: ...
    def brokers(self) -> list[str]: ...


class ConfluentAdmin:
    alters_settings = True

    def __init__(self, address: str, _: Path) -> None:
        self._client = confluent.AdminClient({"bootstrap.servers": address})

    def create(self, topic: str, partitions: int, retention_ms: int) -> None:
        new = confluent.NewTopic(topic, partitions, 1, config={"retention.ms": str(retention_ms)})
        self._done(self._client.create_topics([new]))

    def partitions(self, topic: str) -> int:
        return len(self._client.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self._done(self._client.create_partitions([confluent.NewPartitions(topic, partitions)]))

    def setting(self, topic: str, name: str) -> str | None:
        resource = confluent.ConfigResource(confluent.ResourceType.TOPIC, topic)
        value: str | None = self._done(self._client.describe_configs([resource]))[name].value
        return value

    def alter(self, topic: str, name: str, value: str) -> None:
        entry = confluent.ConfigEntry(name, value, incremental_operation=confluent.AlterConfigOpType.SET)
        resource = confluent.ConfigResource(confluent.ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._done(self._client.incremental_alter_configs([resource]))

    def delete_records(self, topic: str, before: int) -> None:
        self._done(self._client.delete_records([TopicPartition(topic, 0, before)]))

    def delete(self, topic: str) -> None:
        self._done(self._client.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._client.list_topics(timeout=DEADLINE_S).topics)

    def brokers(self) -> list[str]:
        nodes = self._client.describe_cluster().result(DEADLINE_S).nodes
        return [f"{node.host}:{node.port}" for node in nodes]

    def _done(self, futures: dict[Any, Any]) -> Any:
        (future,) = futures.values()
        return future.result(DEADLINE_S)


class KafkaPythonAdmin:
    alters_settings = True

    def __init__(self, address: str, _: Path) -> None:
        self._address = address

    def _ask(self, work: Callable[[Any], Any]) -> Any:
        client = kafka_python.KafkaAdminClient(bootstrap_servers=self._address)
        try:
            return work(client)
        finally:
            client.close()

    def create(self, topic: str, partitions: int, retention_ms: int) -> None:
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": {"retention.ms": retention_ms}}
        self._ask(lambda client: client.create_topics({topic: options}))

    def partitions(self, topic: str) -> int:
        return len(self._ask(lambda client: client.describe_topics([topic]))[0]["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        self._ask(lambda client: client.create_partitions({topic: partitions}))

    def setting(self, topic: str, name: str) -> str | None:
        resource = kafka_python.ConfigResource("TOPIC", topic)
        found = self._ask(lambda client: client.describe_configs([resource], config_filter="all"))
        value: str | None = _search(found, name)
        return value

    def alter(self, topic: str, name: str, value: str) -> None:
        resource = kafka_python.ConfigResource("TOPIC", topic, {name: value})
        self._ask(lambda client: client.alter_configs([resource]))

    def delete_records(self, topic: str, before: int) -> None:
        partition = kafka.TopicPartition(topic, 0)
        self._ask(lambda client: client.delete_records({partition: before}))

    def delete(self, topic: str) -> None:
        self._ask(lambda client: client.delete_topics([topic]))

    def topics(self) -> set[str]:
        return set(self._ask(lambda client: client.list_topics()))

    def brokers(self) -> list[str]:
        nodes = self._ask(lambda client: client.describe_cluster())["brokers"]
        return [f"{node['host']}:{node['port']}" for node in nodes]


def _search(found: Any, name: str) -> Any:
    """The value of a setting, however deep the client has put it."""
    if isinstance(found, dict):
        if name in found:
            entry = found[name]
            return entry["value"] if isinstance(entry, dict) else entry
        if found.get("name") == name:
            return found["value"]
        found = list(found.values())
    if isinstance(found, list | tuple):
        return next((value for inner in found if (value := _search(inner, name)) is not None), None)
    return None


class AiokafkaAdmin:
    alters_settings = False  # it knows only AlterConfigs, which replaces all settings and which Kafka gave up

    def __init__(self, address: str, _: Path) -> None:
        self._address = address

    def _ask(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        async def bounded() -> Any:
            client = aio.AIOKafkaAdminClient(bootstrap_servers=self._address)
            await client.start()
            try:
                return await asyncio.wait_for(work(client), DEADLINE_S)
            finally:
                await client.close()

        return asyncio.run(bounded())

    def create(self, topic: str, partitions: int, retention_ms: int) -> None:
        new = aio.NewTopic(topic, partitions, 1, topic_configs={"retention.ms": str(retention_ms)})
        self._checked(self._ask(lambda client: client.create_topics([new])).topic_errors)

    def partitions(self, topic: str) -> int:
        return len(self._ask(lambda client: client.describe_topics([topic]))[0]["partitions"])

    def grow(self, topic: str, partitions: int) -> None:
        new = aio.NewPartitions(partitions)
        self._checked(self._ask(lambda client: client.create_partitions({topic: new})).topic_errors)

    def setting(self, topic: str, name: str) -> str | None:
        resource = aio.config_resource.ConfigResource(aio.config_resource.ConfigResourceType.TOPIC, topic)
        (answer,) = self._ask(lambda client: client.describe_configs([resource]))
        entries = answer.resources[0][4]
        value: str = next(entry[1] for entry in entries if entry[0] == name)
        return value

    def alter(self, topic: str, name: str, value: str) -> None:
        raise NotImplementedError

    def delete_records(self, topic: str, before: int) -> None:
        wanted = {AioPartition(topic, 0): aio.RecordsToDelete(before)}
        self._ask(lambda client: client.delete_records(wanted))

    def delete(self, topic: str) -> None:
        self._checked(self._ask(lambda client: client.delete_topics([topic])).topic_error_codes)

    def topics(self) -> set[str]:
        return set(self._ask(lambda client: client.list_topics()))

    def brokers(self) -> list[str]:
        nodes = self._ask(lambda client: client.describe_cluster())["brokers"]
        return [f"{node['host']}:{node['port']}" for node in nodes]

    def _checked(self, results: list[tuple[Any, ...]]) -> None:
        assert all(result[1] == 0 for result in results), results


class JavaAdmin:
    """Kafka's own command line tools."""

    alters_settings = True

    def __init__(self, address: str, folder: Path) -> None:
        self._at = ("--bootstrap-server", address)
        self._folder = folder

    def _run(self, tool: str, *args: str) -> str:
        done = run_java(tool, *self._at, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _topics(self, *args: str) -> str:
        return self._run("org.apache.kafka.tools.TopicCommand", *args)

    def _configs(self, topic: str, *args: str) -> str:
        return self._run("kafka.admin.ConfigCommand", "--entity-type", "topics", "--entity-name", topic, *args)

    def create(self, topic: str, partitions: int, retention_ms: int) -> None:
        setting = f"retention.ms={retention_ms}"
        self._topics("--create", "--topic", topic, "--partitions", str(partitions), "--config", setting)

    def partitions(self, topic: str) -> int:
        return self._topics("--describe", "--topic", topic).count("\tPartition: ")

    def grow(self, topic: str, partitions: int) -> None:
        self._topics("--alter", "--topic", topic, "--partitions", str(partitions))

    def setting(self, topic: str, name: str) -> str | None:
        lines = (line.strip() for line in self._configs(topic, "--describe", "--all").splitlines())
        return next(line for line in lines if line.startswith(f"{name}=")).split()[0].partition("=")[2]

    def alter(self, topic: str, name: str, value: str) -> None:
        self._configs(topic, "--alter", "--add-config", f"{name}={value}")

    def delete_records(self, topic: str, before: int) -> None:
        file = self._folder / "offsets.json"
        partition = {"topic": topic, "partition": 0, "offset": before}
        file.write_text(json.dumps({"partitions": [partition], "version": 1}))
        said = self._run("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(file))
        assert f"low_watermark: {before}" in said, said

    def delete(self, topic: str) -> None:
        self._topics("--delete", "--topic", topic)

    def topics(self) -> set[str]:
        return set(self._topics("--list").split())

    def brokers(self) -> list[str]:
        said = self._run("org.apache.kafka.tools.BrokerApiVersionsCommand")
        return [line.split()[0] for line in said.splitlines() if "(id: " in line]


ADMINS: dict[str, Callable[[str, Path], Admin]] = {
    "confluent": ConfluentAdmin,
    "kafka-python": KafkaPythonAdmin,
    "aiokafka": AiokafkaAdmin,
    "java": JavaAdmin,
}
