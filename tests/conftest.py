"""Fixtures that tests of several kinds share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest

from penstock.jvm.kafka import KafkaNode


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
    with KafkaNode(tmp_path_factory.mktemp("kafka"), heap="512m") as node:
        yield node
