"""docs/reference/queries.md: its blocks are one app, and its dry run is what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

from penstock.app import QueryOptions

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "queries.md").read_text()


def test_the_blocks_of_the_page_run_and_mean_what_it_says(tmp_path: Path) -> None:
    app = tmp_path / "shop.py"
    app.write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)))
    words = [sys.executable, "-m", "penstock", "run", str(app), "--dry-run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    found = [line for line in done.stdout.splitlines() if line.startswith("query ")]
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert found == shown.splitlines()


def test_the_page_lists_each_option_of_a_query() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.partition("## Inputs")[0], re.MULTILINE)
    assert {option.name for option in fields(QueryOptions)} | {"reads", "writes", "name"} == set(listed)
