"""The broker's own logs, damaged or moved away: what is said, and what is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.cli.main import main
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.topics import create_topic

Start = Callable[..., BrokerProcess]
TOPIC = "orders"


def begin(address: str) -> Producer:
    """A producer with a transaction open."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "payer", "log_level": 0})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(TOPIC, b"open")
    assert producer.flush(60) == 0
    return producer


def flip(path: Path, word: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[content.index(word)] ^= 1
    path.write_bytes(content)


def open_now(address: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["transactions", "open", TOPIC, "--json", "--broker", address]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.timeout(120)
def test_what_nobody_owns_any_more_is_aborted_where_it_hangs(
    start_broker: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named by topic, partition and producer: as where the marker that ended it is damaged."""
    broker = start_broker()
    create_topic(broker.address, TOPIC, 1)
    begin(broker.address).abort_transaction()
    broker.kill()
    flip(next(broker.data.glob("topics/*/0/*.log")), b"penstock-range")
    broker.start()
    (hanging,) = open_now(broker.address, capsys)
    place = ["--topic", TOPIC, "--partition", "0", "--producer", str(hanging["producer"])]
    assert main(["transactions", "abort", *place, "--broker", broker.address]) == 0
    assert "aborted what producer" in capsys.readouterr().out
    assert open_now(broker.address, capsys) == []
