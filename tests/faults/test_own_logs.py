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
from penstock.drills.recording_clients import create_topic
from penstock.errors import PenstockError

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


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("folder", "word", "way_out"),
    [
        ("groups", b"readers", "move it away: then all groups and their positions are forgotten"),
        ("transactions", b"payer", "move it away: then all transactional ids are forgotten"),
        ("meta", TOPIC.encode(), "begin with another data folder"),
    ],
)
def test_a_damaged_log_of_the_broker_is_told_with_a_way_out(
    start_broker: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, word: bytes, way_out: str
) -> None:
    """The broker does not start and names doctor with its folder; doctor says what moving the log away costs."""
    broker = start_broker()
    create_topic(broker.address, TOPIC, 1)
    begin(broker.address).commit_transaction()
    assert main(["groups", "reset", "readers", "--topic", TOPIC, "--to", "latest", "--broker", broker.address]) == 0
    broker.stop()
    flip(broker.data / folder / f"{0:020}.log", word)
    with pytest.raises(PenstockError, match=f"doctor --data {broker.data}' says what can be done"):
        broker.start()
    capsys.readouterr()
    assert main(["doctor", "--data", str(broker.data)]) == 1
    said = capsys.readouterr().out
    assert f"no broker starts on it: restore {folder}/ from a backup, or {way_out}" in said
    assert "readers get an error" not in said
    if folder != "meta":
        (broker.data / folder).rename(tmp_path / "moved-away")
        broker.start()
        assert main(["consume", TOPIC, "--until-end", "--broker", broker.address]) == 0
        assert capsys.readouterr().out == "open\n"
        assert main(["groups", "describe", "readers", "--broker", broker.address]) == (1 if folder == "groups" else 0)
