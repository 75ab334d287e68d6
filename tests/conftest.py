"""Fixtures that tests of several kinds share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proof.oracle.kafka import KafkaNode

sys.path.insert(0, str(Path(__file__).parent))  # pytest's importlib mode adds no folder of its own
pytest_plugins = ["clients_seen"]

# Waits that prove nothing; tests/compat gives our broker the same heartbeat.
_KAFKA_IN_A_HURRY = {
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


@pytest.fixture(scope="session")
def need_tool() -> Callable[[str], str]:
    """need_tool(name) gives a program's path; without it the test is skipped, or fails where CI=true."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            reason = f"{name} is not installed: run tools/ci-tools"
            if os.environ.get("CI") == "true":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        return path

    return find


@pytest.fixture(scope="session")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A real Apache Kafka, one a worker, started by the first test that asks; use topics of your own."""
    with KafkaNode(tmp_path_factory.mktemp("kafka"), heap="512m", settings=_KAFKA_IN_A_HURRY) as node:
        yield node
