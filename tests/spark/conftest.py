"""Queries on real Spark, in a process as the supervisor starts it, on a real broker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients_seen import ClientWatch

from penstock.drills.broker_process import BrokerProcess

sys.path.insert(0, str(Path(__file__).parent))  # for `driving`: pytest's importlib mode adds no folder of its own


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where one file of tests keeps its data."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def broker(folder: Path, client_watch: ClientWatch) -> Iterator[BrokerProcess]:
    """Our broker, to be killed and started again."""
    with BrokerProcess(folder / "queue", folder) as running, client_watch.watching(running):
        yield running
