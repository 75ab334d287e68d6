"""kafka-python's own integration tests believe that our broker is Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clients_seen import ClientWatch

from penstock.drills.broker_process import BrokerProcess
from tools.kafka_python_suite import CANNOT_PASS, PAGE, SETTINGS, page, run, unpack


@pytest.fixture
def node(tmp_path: Path, client_watch: ClientWatch) -> Iterator[BrokerProcess]:
    """A broker with the settings that these tests expect."""
    with BrokerProcess(tmp_path / "data", tmp_path, settings=SETTINGS) as running, client_watch.watching(running):
        yield running


@pytest.mark.timeout(600)
def test_kafka_pythons_own_tests_pass(node: BrokerProcess, tmp_path: Path) -> None:
    """All but those that need another broker than an outside one of one node."""
    tests = unpack(tmp_path)
    outcome = run(tests, node.address)
    assert len(outcome.passed) >= 50, outcome.said
    assert not outcome.passed & CANNOT_PASS.keys()
    # They have deadlines of a few seconds: on a loaded machine one may need a second chance.
    if failed := outcome.failed - CANNOT_PASS.keys():
        again = run(tests, node.address, *(name.partition("[")[0] for name in sorted(failed)))
        assert failed <= again.passed, outcome.said + again.said


def test_the_page_lists_those_that_cannot() -> None:
    """Run python -m tools.kafka_python_suite HOST:PORT after a change."""
    text = PAGE.read_text("utf-8")
    assert page(text) == text
