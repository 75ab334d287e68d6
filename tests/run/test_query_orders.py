"""`penstock queries pause|resume|restart|start|drop`: each is obeyed once, whatever is killed before and after."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from penstock.analyze.checkpoints import checkpoint_names
from penstock.analyze.order_logs import FileLog
from proof.oracle.kafka import KafkaNode
from tests.run.test_changed_queries import AMOUNTS, NEW, OLD, Bank, command, refusal
from tests.run.test_supervisor import wait_for

START = [sys.executable, "-m", "penstock", "queries", "start", "totals", "--from", "beginning"]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank(tmp_path)


def reports(bank: Bank) -> dict[str, dict[str, Any]]:
    """The last report of each query, without those that are silent."""
    found = json.loads(command("queries", "--json", "--broker", bank.queue))
    return {report["query"]: report for report in found}


def by_queue(bank: Bank, *words: str) -> str:
    """An order that comes through the queue."""
    return command("queries", *words, "--broker", bank.queue)


def kill_analyze(bank: Bank) -> None:
    before = bank.app.parts().get("analyze")
    assert bank.app.kill_part("analyze")
    wait_for(lambda: bank.app.parts().get("analyze") not in (None, before), "analyze starts again")


def wait_state(bank: Bank, state: str, since_ms: int = 0) -> None:
    def is_there() -> bool:
        report = reports(bank).get("totals", {"state": "", "at_ms": 0})
        return report["state"] == state and report["at_ms"] > since_ms

    wait_for(is_there, f"the query is {state}")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def assert_given(said: str, done: str) -> None:
    """On a busy machine a part that was killed may be silent for so long that the order is only said to be kept."""
    assert done in said or "the order is kept" in said


def test_orders_are_obeyed_once_whatever_is_killed(bank: Bank) -> None:
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)

        assert "paused" in by_queue(bank, "pause", "totals")
        kill_analyze(bank)
        since = now_ms()
        bank.send(11)
        wait_state(bank, "paused", since)
        assert bank.totals[-1] == OLD

        kill_analyze(bank)
        assert_given(by_queue(bank, "resume", "totals"), "resumed")
        bank.wait_total(OLD + 11)

        assert "restarted" in bank.order("restart", "totals")
        kill_analyze(bank)
        bank.send(20)
        bank.wait_total(OLD + 31)

        moment = datetime.now(UTC).isoformat()
        bank.send(30)
        bank.wait_total(OLD + 61)
        kill_analyze(bank)
        assert_given(by_queue(bank, "start", "totals", "--from", moment), "started")
        bank.wait_total(30)
        assert bank.app.stop() == 0
    with bank.app:
        bank.send(40)
        bank.wait_total(70)
        assert "started from beginning" in bank.order("start", "totals", "--from", "beginning")
        kill_analyze(bank)
        bank.wait_total(OLD + 61 + 40)
        bank.send(50)
        bank.wait_total(OLD + 61 + 90)
        assert bank.app.stop() == 0


def test_orders_of_a_query_in_real_time(bank: Bank) -> None:
    """It commits every 30 s: what was not committed when it was paused is computed again."""
    bank.write(mode="realtime")
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        assert "paused" in by_queue(bank, "pause", "totals")
        assert "resumed" in by_queue(bank, "resume", "totals")
        bank.send(11)
        bank.wait_total(OLD + 11)
        kill_analyze(bank)
        assert "started from beginning" in bank.order("start", "totals", "--from", "beginning")
        bank.send(12)
        bank.wait_total(OLD + 23)
        assert bank.app.stop() == 0


def test_an_exactly_once_query_that_is_killed_around_an_order_starts_once(bank: Bank) -> None:
    """Each start from the beginning is one batch, and so one result."""
    bank.write(delivery="exactly-once")
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        before = len(bank.totals)
        for number, seconds in enumerate((0.0, 0.5, 2.0), start=1):
            order = [*START, "--data", str(bank.app.data)]
            with subprocess.Popen(order, stdout=subprocess.PIPE, text=True) as given:
                orders = FileLog(bank.app.data)
                wait_for(lambda orders=orders, number=number: len(orders.orders()) == number, "the order is given")
                time.sleep(seconds)  # the moment of the kill, not a wait for something
                kill_analyze(bank)
                assert "started" in given.communicate(timeout=180)[0]
            wait_for(lambda number=number: len(bank.totals) == before + number, "the start has its result")
        bank.send(1, 12)
        bank.wait_total(OLD + 12)
        assert bank.totals[before : before + 3] == [OLD] * 3
        assert bank.app.stop() == 0


def test_an_undeclared_query_is_listed_and_dropped_with_its_topic(bank: Bank) -> None:
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        assert bank.app.stop() == 0
    text = bank.file.read_text()
    bank.file.write_text(text.replace('"totals"', '"sums"'))
    with bank.app:
        wait_state(bank, "undeclared")
        kill_analyze(bank)
        assert_given(by_queue(bank, "drop", "totals", "--yes"), "dropped")
        wait_for(lambda: "totals" not in reports(bank), "the query is dropped")
        assert "totals" not in checkpoint_names(bank.app.data / "analyze" / "checkpoints")
        assert "totals" not in AdminClient({"bootstrap.servers": bank.queue}).list_topics(timeout=10).topics
        assert bank.app.stop() == 0


def test_an_order_through_apache_kafka_is_kept_for_a_start_that_was_refused(
    kafka_node: KafkaNode, tmp_path: Path
) -> None:
    """There the queue runs also while the app does not. Positions are offsets of a group there, too."""
    bank = Bank(tmp_path, kafka_node.address)
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        wait_for(lambda: "penstock.bank.totals" in command("groups", "list", "--broker", bank.queue), "a group")
        assert bank.app.stop() == 0
    bank.write(above="0")
    assert "--from beginning" in refusal(bank.app.start)
    assert "obeyed at the next start" in by_queue(bank, "start", "totals", "--from", "beginning")
    with bank.app:
        bank.wait_total(NEW)
        assert "paused" in by_queue(bank, "pause", "totals")
        assert "resumed" in by_queue(bank, "resume", "totals")
        bank.send(2)
        bank.wait_total(NEW + 2)
        assert bank.app.stop() == 0
