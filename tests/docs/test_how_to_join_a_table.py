"""docs/how-to/join-a-table.md: its files are an app and its tests, and the app can run with the table."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "join-a-table.md"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_files_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    files = re.findall(r"```(?:python|csv)\n# (\w+\.\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for name, text in files:
        (tmp_path / name).write_text(text)
    assert {name for name, _ in files} == {"shop.py", "cards.csv", "test_shop.py"}
    said = run(tmp_path, "penstock", "run", "shop.py", "--dry-run")
    assert f"table    cards: csv {tmp_path / 'cards.csv'}, read again every 10 minutes" in said
    assert "query    owner: purchases, table cards -> owners (realtime)" in said
    assert "2 passed" in run(tmp_path, "pytest", "-q", "test_shop.py")
