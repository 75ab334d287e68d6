"""kill -9 of the broker in the middle of transactions of real clients: they go on, or are aborted as a whole."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking.connection import Connection
from asking.owners import OWNERS, ClientOwner, committed_offset, read_values
from asking.requests import create_topic

from penstock.drills.broker_process import BrokerProcess

# aiokafka leaves the sockets of a broker that was killed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        with Connection(broker.address) as connection:
            create_topic(connection, "rain", 2)
        yield broker
    gc.collect()  # here, where it is excused, and not in the test of somebody else


def kill(process: BrokerProcess) -> None:
    process.kill()
    process.start()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", OWNERS)
def test_a_transaction_goes_on_after_the_broker_was_killed(process: BrokerProcess, kind: str) -> None:
    """What was acknowledged before is committed with what comes after, positions too."""
    owner: ClientOwner = OWNERS[kind](process.address, "till")
    try:
        for number in range(3):
            owner.begin()
            owner.send("rain", f"a{number}", 0)
            if number == 0 or kind != "confluent-kafka":
                # librdkafka 2.16.0 does not send positions any more once the group's coordinator was away.
                owner.send_offset("rain", number + 1, "g")
            kill(process)
            owner.send("rain", f"b{number}", 1)
            owner.commit()
    finally:
        owner.close()
    assert read_values(process.address, "rain", 3, committed=True) == ["a0", "a1", "a2"]
    assert read_values(process.address, "rain", 3, committed=True, partition=1) == ["b0", "b1", "b2"]
    assert committed_offset(process.address, "g", "rain") == (1 if kind == "confluent-kafka" else 3)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", OWNERS)
def test_an_owner_that_dies_with_the_broker_leaves_nothing(process: BrokerProcess, kind: str) -> None:
    """Its next life begins with an empty partition, for readers of committed records."""
    first: ClientOwner = OWNERS[kind](process.address, "till")
    try:
        first.begin()
        first.send("rain", "never")
        kill(process)
        second: ClientOwner = OWNERS[kind](process.address, "till")
        try:
            second.begin()
            second.send("rain", "seen")
            second.commit()
        finally:
            second.close()
    finally:
        first.close()
    assert read_values(process.address, "rain", 1, committed=True) == ["seen"]
    assert read_values(process.address, "rain", 2, committed=False) == ["never", "seen"]
