"""docs/how-to/test-a-query.md: its files are a suite that pytest runs as the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "test-a-query.md"
BLOCKS = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
DEADLINE_S = 300


def test_the_page_is_a_suite_that_passes(tmp_path: Path) -> None:
    """Each warning is an error there, too."""
    assert len(BLOCKS) == PAGE.read_text("utf-8").count("```python\n")
    for name, code in BLOCKS:
        with (tmp_path / name).open("a") as file:
            file.write(code + "\n\n")
    tests = (tmp_path / "test_shop.py").read_text().count("\ndef test_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "PYTEST_"))}
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "."]
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{tests} passed in", done.stdout, re.MULTILINE), done.stdout
    assert done.stderr == ""
