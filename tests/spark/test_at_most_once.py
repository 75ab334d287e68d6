"""At most once: every start is from now on, so that no result is ever written twice."""

from __future__ import annotations

import threading
from pathlib import Path

from driving.analyze import Analyze
from driving.records import Record, read, send

from penstock.drills.broker_process import BrokerProcess


def see_one(broker: BrokerProcess, name: str) -> list[Record]:
    """Send ticks until one was seen: what comes before the query is there is missed, as it is allowed to be."""
    done = threading.Event()

    def send_on() -> None:
        number = 0
        while not done.wait(0.2):
            send(broker.address, "ticks", [{"id": f"{name}{number}"}])
            number += 1

    sender = threading.Thread(target=send_on)
    sender.start()
    try:
        return read(broker.address, "seen", lambda found: any(r.json["id"].startswith(name) for r in found))
    finally:
        done.set()
        sender.join()


def test_what_came_while_nobody_looked_is_missed_and_nothing_is_repeated(broker: BrokerProcess, folder: Path) -> None:
    with Analyze("fleeting.py", broker.address, folder / "data") as analyze:
        see_one(broker, "before")
        analyze.kill()
        send(broker.address, "ticks", [{"id": "meanwhile"}])
        analyze.start()
        found = [record.json["id"] for record in see_one(broker, "after")]
    assert "meanwhile" not in found
    assert len(set(found)) == len(found)
