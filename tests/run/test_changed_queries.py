"""A query that was changed goes on only where that is right, and starts as an operator says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from penstock.errors import PenstockError
from tests.run.test_supervisor import wait_for

APP = """
from penstock import App, Guarantee, sources

bank = App("bank")
moves = bank.topic("moves", schema="{schema}", key="card", partitions=2, guarantee=Guarantee(delivery="{delivery}"))
bank.ingest(sources.Http(), into=moves)
bank.sql("totals", "SELECT {columns} FROM STREAM(moves) WHERE n > {above} GROUP BY card", mode="{mode}")
"""
FIRST = {
    "schema": "card STRING NOT NULL, n INT",
    "delivery": "at-least-once",
    "mode": "microbatch",
    "columns": "card, sum(n) AS total",
    "above": "3",
}
OLD, NEW = 49, 58
AMOUNTS = (4, 5, 6, 7, 8, 9, 10, 3, 3, 3)  # 49 above 3, 58 in all


class Bank:
    """An app with one query, whose text changes."""

    def __init__(self, folder: Path, queue: str = "") -> None:
        """On a queue that runs already, or on a broker of its own."""
        self.file = folder / "bank.py"
        self.app = AppProcess(str(self.file), folder, flags=["--queue", queue] if queue else [])
        self.queue = queue or self.app.queue
        self.write()

    def write(self, **changed: str) -> None:
        self.file.write_text(APP.format_map(FIRST | changed))

    def send(self, *amounts: int) -> None:
        for n in amounts:
            connection = HTTPConnection("127.0.0.1", self.app.port, timeout=40)
            body = json.dumps({"card": "a", "n": n})
            connection.request("POST", "/ingest/moves", body, {"Content-Type": "application/json"})
            assert connection.getresponse().status == 202
            connection.close()

    @property
    def totals(self) -> list[int]:
        """All results, in order."""
        return [json.loads(record.value or b"")["total"] for record in read_topic(self.queue, "totals")]

    def wait_total(self, total: int) -> None:
        wait_for(lambda: self.totals[-1:] == [total], f"the total is {total}")

    def order(self, *words: str) -> str:
        """`penstock queries …` on the data folder."""
        return command("queries", *words, "--data", str(self.app.data))


def command(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


def refusal(start: Callable[[], None]) -> str:
    with pytest.raises(PenstockError) as refused:
        start()
    assert "\nready http" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_changed_query_is_refused_and_then_starts_from_the_beginning(bank: Bank, delivery: str) -> None:
    """Its old answer was 49, and the data say 58. An exactly-once query begins to number its batches again."""
    bank.write(delivery=delivery)
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        assert bank.app.stop() == 0
    bank.write(delivery=delivery, above="0")
    said = refusal(bank.app.start)
    assert "query totals was changed, and cannot go on from its checkpoint: its state was made by Filter" in said
    for words in ("--from beginning", "--from latest", "--keep-state"):
        assert f"penstock queries start totals {words} --data {bank.app.data}" in said
    assert "obeyed at the next start" in bank.order("start", "totals", "--from", "beginning")
    with bank.app:
        bank.wait_total(NEW)
        bank.send(2)
        bank.wait_total(NEW + 2)
        assert bank.app.stop() == 0
    with bank.app:  # the order is obeyed once
        bank.send(40)
        bank.wait_total(NEW + 42)
        assert bank.totals.count(NEW) == 1


def test_a_changed_query_keeps_its_state_or_begins_at_the_end_if_ordered(bank: Bank) -> None:
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        assert bank.app.stop() == 0
    bank.write(above="0")
    dry = [sys.executable, "-m", "penstock", "run", "--dry-run", str(bank.file), "--data", str(bank.app.data)]
    checked = subprocess.run(dry, capture_output=True, text=True, timeout=120, check=False)
    assert checked.returncode == 2
    assert f"penstock queries start totals --keep-state --data {bank.app.data}" in checked.stderr
    assert "--keep-state" in refusal(bank.app.start)
    bank.order("start", "totals", "--keep-state")
    with bank.app:
        bank.send(1)
        bank.wait_total(OLD + 1)
        assert bank.app.stop() == 0
    bank.write(above="1")
    assert "--from latest" in refusal(bank.app.start)
    bank.order("start", "totals", "--from", "latest")
    with bank.app:
        bank.send(100)
        bank.wait_total(100)


def test_a_compatible_change_goes_on_and_says_so(bank: Bank) -> None:
    """A column more in the topic's schema, and another projection above the state."""
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        assert bank.app.stop() == 0
    bank.write(schema="card STRING NOT NULL, n INT, note STRING")
    with bank.app:
        bank.send(10)
        bank.wait_total(OLD + 10)
        assert "query totals: " not in bank.app.said.rpartition("checked")[0].rpartition("stopped")[2]
        assert bank.app.stop() == 0
    bank.write(schema="card STRING NOT NULL, n BIGINT")
    said = refusal(bank.app.start)
    assert "column moves.n was INT and is BIGINT" in said


def test_positions_of_queries_are_offsets_of_a_consumer_group(bank: Bank) -> None:
    """`penstock groups describe` shows the lag, as every Kafka tool does."""

    def lags() -> list[int]:
        (group,) = json.loads(command("groups", "describe", "penstock.bank.totals", "--json", "--broker", bank.queue))
        return [partition["lag"] for partition in group["partitions"] if partition["topic"] == "moves"]

    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        wait_for(lambda: "penstock.bank.totals" in command("groups", "list", "--broker", bank.queue), "a group")
        wait_for(lambda: set(lags()) == {0}, "it has no lag")
        assert bank.app.stop() == 0
