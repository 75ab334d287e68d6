"""`penstock transactions`, against our broker and against Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asking.commands import fine, refused, run_penstock
from asking.connection import Connection
from asking.requests import create_topic
from asking.transactions import Owner, fetch_committed

from penstock.errors import ErrorCode

Penstock = Callable[..., Any]


@pytest.fixture
def penstock(broker_address: str) -> Penstock:
    """penstock(*args) runs `penstock transactions` to its end."""
    return lambda *args: run_penstock(broker_address, "transactions", *args)


@pytest.fixture
def owner(connection: Connection, topic: str) -> Owner:
    """One with a transaction open in the second of two partitions."""
    create_topic(connection, topic, 2)
    made = Owner(connection, topic)
    assert made.init() == 0
    assert made.send(topic, "open", 1) == 0
    return made


def test_an_open_transaction_is_listed_and_described(penstock: Penstock, owner: Owner, topic: str) -> None:
    """By id with its state, its producer and its partitions."""
    listed = {one["id"]: one for one in json.loads(fine(penstock("list", "--state", "Ongoing", "--json")))}
    assert listed[topic] == {"id": topic, "state": "Ongoing", "producer": owner.producer_id}
    (told,) = json.loads(fine(penstock("describe", topic, "--json")))
    assert (told["state"], told["epoch"], told["timeout_ms"]) == ("Ongoing", owner.epoch, 60_000)
    assert told["partitions"] == [{"topic": topic, "partition": 1}]
    assert topic in fine(penstock("describe", topic))
    (opened,) = json.loads(fine(penstock("open", topic, "--json")))
    assert (opened["partition"], opened["producer"], opened["first_offset"]) == (1, owner.producer_id, 0)
    assert opened["id"] == topic
    head, row = fine(penstock("open", topic)).splitlines()
    assert (head.split()[:3], row.split()[:3]) == (["TOPIC", "PARTITION", "ID"], [topic, "1", topic])
    assert owner.end() == 0


def test_an_owner_with_nothing_open_is_left_alone_unless_fencing_is_asked_for(
    penstock: Penstock, owner: Owner, topic: str
) -> None:
    """Told what to do; it goes on as if nothing had been asked."""
    assert owner.end() == 0
    assert "so nothing is aborted; --fence stops whoever works under it" in refused(penstock("abort", topic))
    assert owner.send(topic, "more", 1) == 0
    assert owner.end() == 0
    assert "its owner is fenced" in fine(penstock("abort", topic, "--fence"))
    assert owner.send(topic, "late", 1) != 0


def test_an_open_transaction_is_aborted_by_its_id(
    penstock: Penstock, owner: Owner, connection: Connection, topic: str
) -> None:
    """And its owner is fenced."""
    assert fine(penstock("abort", topic)) == f"aborted {topic}\n"
    assert fetch_committed(connection, topic, partition=1).responses[0].partitions[0].last_stable_offset == 2
    assert owner.end() == ErrorCode.PRODUCER_FENCED


def test_what_an_id_owns_is_not_torn_in_one_partition(
    penstock: Penstock, owner: Owner, connection: Connection, topic: str
) -> None:
    """It is aborted by its id, or not at all: its owner can still commit."""
    where = ("--topic", topic, "--partition", "1", "--producer", str(owner.producer_id))
    said = refused(penstock("abort", *where))
    assert f"belongs to {topic}" in said
    assert f"'penstock transactions abort {topic}' aborts all of it" in said
    assert owner.end() == 0
    assert owner.init() == 0  # Kafka ends a transaction after its answer, and lets nobody begin before
    assert fetch_committed(connection, topic, partition=1).responses[0].partitions[0].last_stable_offset == 2
    assert "nothing open" in refused(penstock("abort", *where))
    assert "has no partition 7, only 0 to 1" in refused(penstock("abort", *where[:3], "7", *where[4:]))


def test_what_is_not_there_is_said_in_a_sentence(penstock: Penstock) -> None:
    """With the next step."""
    for args in (("describe", "nobody-has-this-id"), ("abort", "nobody-has-this-id")):
        assert "'penstock transactions list' shows what there is" in refused(penstock(*args))
    for place in (("open", "nope"), ("abort", "--topic", "nope", "--partition", "0", "--producer", "7")):
        assert "no topic nope: 'penstock topics list' shows" in refused(penstock(*place))
    assert "either a transactional id" in refused(penstock("abort"), 2)
    assert "--fence goes with" in refused(penstock("abort", "--topic", "t", "--fence"), 2)
    assert "go together" in refused(penstock("abort", "--topic", "t"), 2)
    assert "either a transactional id" in refused(penstock("abort", "some-id", "--producer", "1"), 2)
