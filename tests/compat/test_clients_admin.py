"""Operators' clients: topics are made, looked at, changed and removed by each of them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from asking.admins import ADMINS
from asking.batches import batch_of, lines
from asking.connection import DEADLINE_S, Connection
from asking.java import run_java
from asking.nodes import Both
from asking.requests import EARLIEST, LATEST, create_topic, list_offset, produce

from penstock.kafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

LISTENERS = "advertised.listeners"


def until(holds: Callable[[], bool]) -> None:
    """Kafka's broker learns of a change a moment after its controller has answered."""
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, "it does not become true"


@pytest.mark.parametrize("client", ADMINS)
def test_the_life_of_a_topic(broker_address: str, client: str, topic: str, tmp_path: Path) -> None:
    """Create, describe, grow, configure, delete records, delete: each step is seen by the next."""
    admin = ADMINS[client](broker_address, tmp_path)
    admin.create(topic, 2, retention_ms=3_600_000)
    until(lambda: admin.partitions(topic) == 2)
    assert admin.setting(topic, "retention.ms") == "3600000"
    admin.grow(topic, 3)
    until(lambda: admin.partitions(topic) == 3)
    if admin.alters_settings:
        admin.alter(topic, "retention.ms", "7200000")
        until(lambda: admin.setting(topic, "retention.ms") == "7200000")
    with Connection(broker_address) as connection:
        until(lambda: produce(connection, topic, batch_of(lines("a", "b", "c"))).error_code == 0)
        admin.delete_records(topic, 2)
        assert list_offset(connection, topic, EARLIEST) == (0, -1, 2)
        assert list_offset(connection, topic, LATEST) == (0, -1, 3)
    admin.delete(topic)
    until(lambda: topic not in admin.topics())


@pytest.mark.parametrize("client", ADMINS)
def test_the_cluster_is_one_broker_at_its_address(broker_address: str, client: str, tmp_path: Path) -> None:
    """A client that knows one address learns the same one."""
    assert ADMINS[client](broker_address, tmp_path).brokers() == [broker_address]


def test_a_broker_tells_its_settings_by_kafkas_names(both: Both) -> None:
    """What consoles look for has the same name, type and default; the address is each broker's own."""
    asked = ["auto.create.topics.enable", "default.replication.factor", "delete.topic.enable", "num.partitions"]
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=[*asked, LISTENERS])
    request = DescribeConfigsRequest(resources=[resource])
    answers = [each.ask(request, 4, DescribeConfigsResponse).results[0].configs for each in both]
    ours, theirs = ({told.name: (told.config_type, told.value) for told in answer} for answer in answers)
    assert {name: ours[name] for name in asked} == {name: theirs[name] for name in asked}
    for told, connection in zip((ours, theirs), both, strict=True):
        assert told[LISTENERS] == (7, f"PLAINTEXT://{connection.address}")


def test_kcat_lists_topics_and_brokers(broker_address: str, topic: str, need_tool: Callable[[str], str]) -> None:
    """What is there, in its own words."""
    with Connection(broker_address) as connection:
        create_topic(connection, topic, partitions=3)
    command = [need_tool("kcat"), "-b", broker_address, "-L", "-J", "-t", topic]
    listing = json.loads(subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=True).stdout)
    assert listing["brokers"] == [{"id": 1, "name": broker_address}]
    (found,) = listing["topics"]
    assert [part["partition"] for part in found["partitions"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (("--create", "--topic", "../../x"), "InvalidTopicException"),
        (("--create", "--topic", "r", "--replication-factor", "2"), "InvalidReplicationFactorException"),
    ],
    ids=["name", "replicas"],
)
def test_javas_tool_is_told_what_is_wrong(broker_address: str, refused: tuple[str, ...], why: str) -> None:
    """The same exception, by name, from both brokers."""
    at = ("--bootstrap-server", broker_address)
    done = run_java("org.apache.kafka.tools.TopicCommand", *at, *refused)
    assert done.returncode == 1
    assert why in done.stdout + done.stderr
