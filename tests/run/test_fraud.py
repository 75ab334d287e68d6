"""The first business, end to end on real parts: HTTP, queue, Spark, push."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from examples.fraud.oracle import decisions
from examples.fraud.storm import APP, run_storm
from penstock.demo.purchases import purchases
from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from penstock.events.headers import ID, QUERY, REASON, SOURCE

DEADLINE_S = 120.0
COUNT = 100


@pytest.fixture(scope="module")
def chmods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH whose `chmod` writes each of its calls to the file `calls`."""
    folder = tmp_path_factory.mktemp("chmods")
    spy = folder / "chmod"
    spy.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\nexec {shutil.which("chmod")} "$@"\n')
    spy.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def fraud(tmp_path_factory: pytest.TempPathFactory, chmods: Path) -> Iterator[AppProcess]:
    environ = {
        "PENSTOCK_ANALYZE_DEAD_LETTERS_EVERY_MS": "1000",
        "PATH": f"{chmods}{os.pathsep}{os.environ['PATH']}",
    }
    with AppProcess(APP, tmp_path_factory.mktemp("fraud"), environ=environ) as running:
        yield running


@pytest.fixture
def connection(fraud: AppProcess) -> Iterator[HTTPConnection]:
    """To the doors."""
    with closing(HTTPConnection("127.0.0.1", fraud.port, timeout=60)) as connection:
        yield connection


def post(connection: HTTPConnection, path: str, body: str) -> tuple[int, Any]:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def decided(connection: HTTPConnection, purchase: dict[str, Any]) -> Any:
    """The decision of a purchase: from the answer, or, on a slow machine, from where the answer says to ask."""
    status, answer = post(connection, "/ingest/purchases?wait=decide", json.dumps(purchase))
    deadline = time.monotonic() + DEADLINE_S
    while status == 202:
        connection.request("GET", answer["where"])
        asked = connection.getresponse()
        found = json.loads(asked.read())
        if asked.status == 200:
            return found["result"]
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    assert status == 200, answer
    return answer["result"]


def wait_for(topic: str, app: AppProcess, count: int) -> list[Any]:
    deadline = time.monotonic() + DEADLINE_S
    while len(found := list(read_topic(app.queue, topic))) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records in {topic}"
        time.sleep(0.2)
    return found


def test_each_purchase_is_answered_with_its_decision(fraud: AppProcess, connection: HTTPConnection) -> None:
    """As the oracle decides it; late and repeated ones too. The stored decisions say the same."""
    sent = list(islice(purchases(3, datetime.now(UTC), 20.0), COUNT))
    answers = {purchase["id"]: decided(connection, purchase) for purchase in sent}
    expected = decisions(sent)
    assert {id: (one["decision"], one["reason"]) for id, one in answers.items()} == {
        id: (one.decision, one.reason) for id, one in expected.items()
    }
    stored = wait_for("decisions", fraud, len(sent))
    assert {json.loads(record.value)["id"] for record in stored} == set(expected)
    for record in stored:
        assert record.header(ID) == json.loads(record.value)["id"].encode()
        assert record.header(QUERY) == b"decide"
        assert (record.header(SOURCE) or b"").startswith(b"purchases/")


def test_an_id_that_comes_again_with_another_purchase_is_decided_as_the_first(connection: HTTPConnection) -> None:
    """Nobody gets a decline approved by sending it again with less in it."""
    declined = {"id": "twice", "card": "card-twice", "amount": 950.0, "country": "US", "home": "NL"}
    declined["at"] = datetime.now(UTC).isoformat()
    first = decided(connection, declined)
    again = decided(connection, declined | {"amount": 1.0, "country": "NL"})
    for decision in (first, again):
        assert (decision["decision"], decision["reason"], decision["amount"]) == ("declined", "abroad", 950.0)
        assert decision["country"] == "US"


def test_a_purchase_that_comes_too_late_is_not_decided_however_young_the_query_is(
    fraud: AppProcess, connection: HTTPConnection
) -> None:
    """Spark has no watermark before its first commits: who is too late must not depend on it."""
    now = datetime.now(UTC)
    late = {"id": "late", "card": "card-late", "amount": 10.0, "country": "NL", "home": "NL"}
    late["at"] = (now - timedelta(hours=3)).isoformat()
    status, _ = post(connection, "/ingest/purchases", json.dumps(late))
    assert status == 202
    behind = decided(connection, late | {"id": "behind", "at": (now - timedelta(minutes=50)).isoformat()})
    assert (behind["decision"], behind["reason"]) == ("approved", None)
    assert "late" not in {json.loads(record.value)["id"] for record in read_topic(fraud.queue, "decisions")}


def test_what_is_no_purchase_is_refused_at_the_door(connection: HTTPConnection) -> None:
    """With the field that is wrong."""
    status, answer = post(connection, "/ingest/purchases", '{"id": "x", "card": "c", "amount": "much"}')
    assert status == 400
    assert "amount" in json.dumps(answer)


def test_what_comes_past_the_door_and_does_not_parse_becomes_a_dead_letter(
    fraud: AppProcess, connection: HTTPConnection
) -> None:
    """With its reason, where it stood, and its bytes; nothing stops."""
    producer = Producer({"bootstrap.servers": fraud.queue})
    for value in (b"not json", b'{"id": "y", "card": "c", "amount": "much"}', b"\xff\xfe"):
        producer.produce("purchases", value)
    producer.flush()
    dead = wait_for("purchases.dead", fraud, 3)
    assert {record.value for record in dead} >= {b"not json", b"\xff\xfe"}
    reasons = b" ".join(record.header(REASON) or b"" for record in dead)
    assert b"not JSON" in reasons
    assert b"field amount" in reasons
    purchase = next(purchases(4, datetime.now(UTC), 20.0))
    assert decided(connection, purchase)["id"] == purchase["id"]


def test_spark_starts_no_process_for_the_files_it_writes(fraud: AppProcess, chmods: Path) -> None:
    """Hadoop's own file system runs `chmod` for each of them, several times at every commit."""
    deadline = time.monotonic() + DEADLINE_S
    while not list(fraud.data.glob("analyze/checkpoints/*/commits/0")):
        assert time.monotonic() < deadline, "nothing is committed"
        time.sleep(0.1)
    assert not (chmods / "calls").exists()


def test_a_storm_loses_nothing_and_every_decision_is_the_oracles(tmp_path: Path) -> None:
    """Broker, edge, Spark's JVM, its Python driver and the supervisor are killed while purchases come."""
    seed = int(os.environ.get("SEED", time.time()))
    outcome = run_storm(tmp_path, seed, 45.0, lambda line: None)
    assert not outcome.faults, f"seed {seed}: {outcome.faults}"
    assert all(outcome.kills.values())
    assert outcome.accepted > 50
