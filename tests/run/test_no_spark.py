"""`penstock run` where PySpark is not installed: one sentence with the way out, and nothing starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.conftest import PLAIN

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
"""
IMPORTS = "from pyspark.sql import functions as F\n" + PLAIN
SQL = PLAIN + '\nplain.sql("kept", "SELECT id, _event FROM STREAM(clicks)")\n'
FUNCTION = PLAIN + '\n@plain.query(reads=clicks, writes="kept")\ndef keep(clicks): return clicks\n'


def penstock(folder: Path, text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """`penstock run app.py` in a Python that has no pyspark."""
    (folder / "app.py").write_text(text)
    (folder / "without").mkdir()
    (folder / "without" / "sitecustomize.py").write_text(WITHOUT)
    command = [sys.executable, "-m", "penstock", "run", "app.py", "--port", "0", "--listen", "127.0.0.1:0", *flags]
    environ = os.environ | {"PYTHONPATH": str(folder / "without")}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("flags", [[], ["--dry-run"]], ids=["run", "dry-run"])
@pytest.mark.parametrize(
    ("text", "what"),
    [(IMPORTS, "app.py imports pyspark, which"), (SQL, "the queries run on Spark, which"), (FUNCTION, "the queries")],
    ids=["imports", "sql", "function"],
)
def test_without_pyspark_the_way_to_install_it_is_one_sentence(
    tmp_path: Path, text: str, what: str, flags: list[str]
) -> None:
    answer = penstock(tmp_path, text, *flags)
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"penstock: {what}")
    assert answer.stderr.endswith("is not installed: run pip install 'penstock[spark]'.\n")
    assert answer.stderr.count("\n") == 1
    assert answer.stdout == ""
    assert not (tmp_path / ".penstock").exists()


def test_an_app_without_queries_needs_no_pyspark(tmp_path: Path) -> None:
    answer = penstock(tmp_path, PLAIN, "--dry-run")
    assert (answer.returncode, answer.stderr) == (0, "")
