"""The apps of docs/how-to/change-a-query.md: a changed query runs beside the first one, which is then dropped."""

from __future__ import annotations

import json
import re
from pathlib import Path

from penstock.drills.recording_clients import read_topic
from tests.run.test_changed_queries import AMOUNTS, NEW, OLD, Bank, command
from tests.run.test_query_orders import reports
from tests.run.test_supervisor import wait_for

PAGE = Path(__file__).parents[2] / "docs/how-to/change-a-query.md"


def total_of(bank: Bank, topic: str) -> int | None:
    totals = [json.loads(record.value or b"")["total"] for record in read_topic(bank.queue, topic)]
    return totals[-1] if totals else None


def test_a_second_name_runs_side_by_side_and_then_the_first_is_dropped(tmp_path: Path) -> None:
    first, both, second = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    bank = Bank(tmp_path)
    bank.file.write_text(first)
    with bank.app:
        bank.send(*AMOUNTS)
        wait_for(lambda: total_of(bank, "totals") == OLD, "the first query runs")
        assert bank.app.stop() == 0
    bank.file.write_text(both)
    with bank.app:
        wait_for(lambda: total_of(bank, "totals2") == NEW, "the second query has read from the start")
        bank.send(2)
        wait_for(lambda: total_of(bank, "totals2") == NEW + 2, "both go on")
        assert total_of(bank, "totals") == OLD
        assert bank.app.stop() == 0
    bank.file.write_text(second)
    with bank.app:
        wait_for(lambda: reports(bank).get("totals", {}).get("state") == "undeclared", "it is listed as undeclared")
        said = command("queries", "drop", "totals", "--yes", "--data", str(bank.app.data))
        assert "totals: dropped" in said
        bank.send(3)
        wait_for(lambda: total_of(bank, "totals2") == NEW + 5, "the second query goes on")
        assert bank.app.stop() == 0
