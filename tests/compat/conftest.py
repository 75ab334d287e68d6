"""One suite, two brokers: ours, and a real Apache Kafka as the oracle."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients_seen import ClientWatch

from penstock.drills.broker_process import BrokerProcess
from proof.oracle.kafka import KafkaNode

sys.path.insert(0, str(Path(__file__).parent))  # for `asking`: pytest's importlib mode adds no folder of its own

from asking.connection import Connection
from asking.nodes import Both


@pytest.fixture(scope="session")
def penstock_node(tmp_path_factory: pytest.TempPathFactory, client_watch: ClientWatch) -> Iterator[BrokerProcess]:
    """A real broker process, one a worker, started by the first test that asks; use topics of your own."""
    folder = tmp_path_factory.mktemp("penstock")
    hurry = {"consumer_heartbeat_ms": 1_000}
    with BrokerProcess(folder / "data", folder, settings=hurry) as node, client_watch.watching(node):
        yield node
        assert node.is_running, node.said


@pytest.fixture(scope="module", params=["penstock", "kafka"])
def broker(request: pytest.FixtureRequest) -> str:
    """Which broker a test runs against."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def broker_address(broker: str, request: pytest.FixtureRequest) -> str:
    """HOST:PORT of the broker under test."""
    return address_of(broker, request)


def address_of(broker: str, request: pytest.FixtureRequest) -> str:
    outside = os.environ.get(f"COMPAT_{broker.upper()}")  # a node that runs already, while writing tests
    if outside is not None:
        return outside
    node: BrokerProcess | KafkaNode = request.getfixturevalue(f"{broker}_node")
    return node.address


@pytest.fixture
def connection(broker_address: str) -> Iterator[Connection]:
    """A bare connection to the broker under test."""
    with Connection(broker_address) as opened:
        yield opened


@pytest.fixture
def both(request: pytest.FixtureRequest) -> Iterator[Both]:
    """A bare connection to each broker, to ask them the same and compare."""
    with Connection(address_of("penstock", request)) as ours, Connection(address_of("kafka", request)) as theirs:
        yield Both(ours, theirs)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses, the same on both brokers."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-").removeprefix("test-")
    return f"{words[:180]}-{os.getpid()}"
