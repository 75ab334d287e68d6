"""docs/how-to/score-with-a-model.md: its files train, score and pass their test, and the query runs in real time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "score-with-a-model.md"
BLOCKS = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
DEADLINE_S = 240


def run(folder: Path, *arguments: str) -> str:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=own, capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_trains_scores_and_runs_in_real_time(tmp_path: Path) -> None:
    assert list(BLOCKS) == ["train.py", "desk.py", "test_desk.py"]
    for name, code in BLOCKS.items():
        (tmp_path / name).write_text(code)
    run(tmp_path, "train.py")
    assert "1 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", ".")
    plan = run(tmp_path, "-m", "penstock", "run", "desk.py", "--dry-run")
    assert "query    suspects: purchases -> suspects (realtime)" in plan
