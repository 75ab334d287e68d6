"""Real transactional producers and readers, the same on both brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import aiokafka.errors  # type: ignore[import-untyped]  # ships no types
import confluent_kafka
import pytest
from asking.clients import kafka
from asking.connection import Connection
from asking.owners import OWNERS, ClientOwner, committed_offset, read_values
from asking.requests import create_topic

from penstock.config.broker import BrokerConfig
from penstock.drills.broker_process import BrokerProcess

FENCED = (confluent_kafka.KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError)
Own = Callable[..., Any]


@pytest.fixture(params=OWNERS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def own(broker_address: str, kind: str) -> Iterator[Own]:
    """own(name) makes a transactional producer, closed at the end of the test."""
    with ExitStack() as stack:

        def make(name: str) -> ClientOwner:
            owner: ClientOwner = OWNERS[kind](broker_address, name)
            stack.callback(owner.close)
            return owner

        yield make


def test_what_is_committed_is_read_and_what_is_aborted_is_not(
    connection: Connection, broker_address: str, topic: str, own: Own
) -> None:
    """In two partitions; a reader of everything sees it all."""
    create_topic(connection, topic, 2)
    owner = own(topic)
    for number, is_commit in enumerate((True, False, True)):
        owner.begin()
        for partition in (0, 1):
            owner.send(topic, f"v{number}", partition)
        owner.commit() if is_commit else owner.abort()
    for partition in (0, 1):
        assert read_values(broker_address, topic, 2, committed=True, partition=partition) == ["v0", "v2"]
        assert read_values(broker_address, topic, 3, committed=False, partition=partition) == ["v0", "v1", "v2"]


def test_positions_are_committed_with_the_transaction(
    connection: Connection, broker_address: str, topic: str, own: Own
) -> None:
    """And forgotten with an aborted one."""
    create_topic(connection, topic)
    owner = own(topic)
    owner.begin()
    owner.send(topic, "kept")
    owner.send_offset(topic, 5, topic)
    owner.commit()
    owner.begin()
    owner.send(topic, "gone")
    owner.send_offset(topic, 9, topic)
    owner.abort()
    assert read_values(broker_address, topic, 1, committed=True) == ["kept"]
    assert committed_offset(broker_address, topic, topic) == 5


def test_a_second_producer_of_the_same_id_fences_the_first(
    connection: Connection, broker_address: str, topic: str, own: Own
) -> None:
    """What the first had open is aborted, and it cannot commit any more."""
    create_topic(connection, topic)
    first = own(topic)
    first.begin()
    first.send(topic, "zombie")
    second = own(topic)
    second.begin()
    second.send(topic, "alive")
    with pytest.raises(FENCED):
        first.commit()
    second.commit()
    assert read_values(broker_address, topic, 1, committed=True) == ["alive"]


def test_librdkafka_does_not_ask_for_ever_for_an_id_that_is_too_long(penstock_node: BrokerProcess) -> None:
    """A fatal error at once instead of a time-out; the broker's log names the limit."""
    too_long = "t" * (BrokerConfig().transactional_id_chars_max + 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": penstock_node.address, "transactional.id": too_long})
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        producer.init_transactions(60)
    error = refused.value.args[0]
    assert (error.name(), error.fatal()) == ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", True)
    assert "transactional_id_chars_max" in penstock_node.said
