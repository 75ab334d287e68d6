"""A table that queries join is read again while they run; no event is lost, and a broken table changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving.analyze import Analyze
from driving.records import Record, read, send

from penstock.drills.broker_process import BrokerProcess


class Owned(Analyze):
    """The app and its file of cards."""

    file: Path

    def write(self, text: str) -> None:
        """Replace the file as a whole."""
        part = self.file.with_suffix(".part")
        part.write_text(text)
        os.replace(part, self.file)


@pytest.fixture(scope="module")
def owned(broker: BrokerProcess, folder: Path) -> Iterator[Owned]:
    file = folder / "cards.csv"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDS", str(file))
        analyze = Owned("owned.py", broker.address, folder / "data")
        analyze.file = file
        yield analyze
        analyze.end()


def owners(found: list[Record]) -> dict[str, str]:
    return {record.json["id"]: record.json["owner"] for record in found}


def results(broker: BrokerProcess, topic: str, count: int) -> dict[str, str]:
    """The owner of each purchase, once there are so many of them."""
    return owners(read(broker.address, topic, lambda found: len(owners(found)) >= count))


def purchase(broker: BrokerProcess, *ids: str) -> None:
    send(broker.address, "purchases", [{"id": id, "card": "4711"} for id in ids])


def test_events_are_joined_with_the_rows_that_the_file_has_by_then(owned: Owned, broker: BrokerProcess) -> None:
    owned.write("card,owner\n4711,Ann\n")
    owned.start()
    purchase(broker, "a")
    assert results(broker, "owners", 1) == results(broker, "billed", 1) == {"a": "Ann"}
    assert "query owner: running, realtime" in owned.lines
    assert not any(line.startswith("query owner: restarting") for line in owned.lines), "Spark runs it in real time"

    owned.write("card,owner\n4711,Bob\n")
    owned.wait_for_line(lambda line: line == "table cards was read again, and has other rows")
    for query in ("owner", "billed", "per_owner"):
        wait_for_restart(owned, query)
    purchase(broker, "b")
    assert results(broker, "owners", 2)["b"] == "Bob"
    assert results(broker, "billed", 2) == {"a": "Ann", "b": "Bob"}


def wait_for_restart(owned: Owned, query: str) -> None:
    """Until it was started with the new rows."""
    news = owned.lines.index("table cards was read again, and has other rows")
    owned.wait_for_line(lambda line: line == f"query {query}: running" and line in owned.lines[news:])


def test_a_broken_file_keeps_the_old_rows_and_is_reported(owned: Owned, broker: BrokerProcess) -> None:
    """Also over a start; the status of each query that joins it says why."""
    owned.write("card,owner\n4711,Carl,half a li")
    line = owned.wait_for_line(lambda line: line.startswith("table cards keeps its old rows: "))
    assert "half a li" in line or "CSV" in line or "Malformed" in line, line
    purchase(broker, "c")
    assert results(broker, "billed", 3)["c"] == "Bob"
    read(broker.address, "penstock.queries", lambda found: any(is_kept(record) for record in found))

    owned.kill()
    owned.file.unlink()
    purchase(broker, "d")
    owned.start()
    said = f"table cards keeps its old rows: there is no file {owned.file}"
    assert owned.wait_for_line(lambda line: line.startswith("table cards")) == said
    assert results(broker, "billed", 4)["d"] == "Bob"

    owned.write("card,owner\n4711,Dora\n")
    owned.wait_for_line(lambda line: line == "table cards was read again, and has other rows")
    wait_for_restart(owned, "billed")
    purchase(broker, "e")
    assert results(broker, "billed", 5) == {"a": "Ann", "b": "Bob", "c": "Bob", "d": "Bob", "e": "Dora"}


def is_kept(record: Record) -> bool:
    status = record.json
    return bool(
        status["query"] == "billed"
        and status["state"] == "running"
        and str(status["reason"]).startswith("table cards keeps its old rows")
    )


def test_a_kill_while_a_table_changes_loses_no_event(owned: Owned, broker: BrokerProcess) -> None:
    ids = [f"n{number}" for number in range(300)]
    purchase(broker, *ids)
    owned.write("card,owner\n4711,Emil\n")
    read(broker.address, "billed", lambda found: "n0" in owners(found))
    owned.kill()
    owned.start()
    for topic in ("owners", "billed"):
        found = read(broker.address, topic, lambda found: len(owners(found)) >= 305)
        assert {record.json["id"] for record in found} >= set(ids)
    assert len(found) == 305, "exactly once: no result comes again"
