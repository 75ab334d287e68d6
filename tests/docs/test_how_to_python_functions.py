"""docs/how-to/python-functions-in-queries.md: its app runs, and gives what the page says."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from tests.run.test_supervisor import wait_for

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "python-functions-in-queries.md"


def test_the_app_of_the_page_gives_what_it_says(tmp_path: Path) -> None:
    for name, text in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(text)
    with AppProcess(str(tmp_path / "desk.py"), tmp_path) as app:
        for number, amount in enumerate([10.0, 200.0, 1000.0]):
            event = {"id": f"p{number}", "card": "a" if number else "b", "amount": amount}
            request = urllib.request.Request(f"{app.url}/ingest/payments", json.dumps(event).encode(), method="POST")
            request.add_header("Content-Type", "application/json")
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 202

        def results(topic: str) -> list[dict[str, Any]]:
            return [json.loads(record.value or b"") for record in read_topic(app.queue, topic)]

        wait_for(lambda: len(results("priced")) == 3, "each payment has its price")
        assert sorted((row["id"], row["band"], round(row["euros"], 2)) for row in results("priced")) == [
            ("p0", "small", 9.3), ("p1", "large", 186.0), ("p2", "large", 930.0),
        ]  # fmt: skip
        wait_for(lambda: sum(row["payments"] for row in results("visits")) == 3, "both cards are quiet")
        assert {row["card"] for row in results("visits")} == {"a", "b"}
