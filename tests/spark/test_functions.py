"""Python functions in queries: every kind gives what plain Python gives, whatever is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from driving.analyze import Analyze
from driving.records import Record, read, reading, send

from penstock.drills.broker_process import BrokerProcess

BURST = 200
CARDS = 5
WEIGHTS = (0.5, 2.0, 4.0)


def burst(broker: BrokerProcess, sent: int) -> int:
    """Send the next events; how many were sent in all."""
    events = [{"id": f"n{n}", "card": f"card-{n % CARDS}", "n": n} for n in range(sent, sent + BURST)]
    send(broker.address, "numbers", events)
    return sent + BURST


def of_rows(sent: int) -> dict[str, list[dict[str, object]]]:
    """What plain Python makes of each event, by topic."""
    parity = ["odd" if n % 2 else "even" for n in range(sent)]
    return {
        "scored": [{"id": f"n{n}", "value": n * WEIGHTS[n % 3], "parity": parity[n]} for n in range(sent)],
        "rated": [{"id": f"n{n}", "rate": n * 1.5, "beside": parity[n]} for n in range(sent)],
        "mapped": [{"id": f"n{n}", "twice": 2 * n} for n in range(sent)],
    }


def last(found: list[Record], field: str) -> dict[str, int]:
    """The value that each card has at the end."""
    ordered = sorted((record.json for record in found), key=lambda row: row["events"])
    return {row["card"]: row[field] for row in ordered}


@pytest.mark.timeout(600)
def test_every_kind_of_function_is_exact_through_kills(broker: BrokerProcess, folder: Path) -> None:
    """kill -9 of the driver, then of the JVM, each in the middle of a burst."""
    analyze = Analyze("functions.py", broker.address, folder / "data")
    try:
        analyze.start()
        sent = burst(broker, 0)
        read(broker.address, "mapped", lambda found: len(found) > 0)
        analyze.kill()
        analyze.start()
        sent = burst(broker, sent)
        read(broker.address, "scored", lambda found: len(found) > BURST)
        os.kill(analyze.children[0], signal.SIGKILL)
        assert analyze.wait() == 1
        sent = burst(broker, sent)
        analyze.start()
        totals = {f"card-{card}": sum(range(card, sent, CARDS)) for card in range(CARDS)}
        events = dict.fromkeys(totals, sent // CARDS)
        read(broker.address, "sums", lambda found: last(found, "events") == events)
        found = read(broker.address, "counts", lambda found: last(found, "events") == events)
        assert max(record.json["events"] for record in found) == sent // CARDS
        with reading(broker.address, "sums") as reader:
            assert last(reader.to_end(), "total") == totals
        for topic, wanted in of_rows(sent).items():
            rows = read(broker.address, topic, lambda found: len(found) >= sent)
            assert sorted((r.json for r in rows), key=lambda row: int(row["id"][1:])) == wanted, topic
    finally:
        analyze.end()
