"""A query whose state grows past its limit is parked, and the others go on."""

from __future__ import annotations

from pathlib import Path

from driving.analyze import Analyze
from driving.records import read, send

from penstock.drills.broker_process import BrokerProcess


def test_a_query_with_too_much_state_is_parked_while_others_go_on(broker: BrokerProcess, folder: Path) -> None:
    queue = broker.address
    with Analyze("counting.py", queue, folder / "bounds", state_rows_max=3) as analyze:
        send(queue, "numbers", [{"id": f"{n}", "card": f"{n}", "n": n} for n in range(4)])
        parked = analyze.wait_for_line(lambda line: line.startswith("query total: parked"))
        assert "its state has 4 rows, and state_rows_max in [analyze] is 3: give watermark=" in parked
        send(queue, "numbers", [{"id": "later", "card": "later", "n": 5}])
        read(queue, "copies", lambda found: any(record.json["id"] == "later" for record in found))
        assert analyze.stop() == 0
