"""Before anything starts, every query that cannot run is named, all at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from driving.analyze import APPS, WITHIN_S, Analyze

from penstock.drills.broker_process import BrokerProcess


def test_every_fault_of_every_query_is_told_and_nothing_starts(broker: BrokerProcess, folder: Path) -> None:
    """Exit status 2, one sentence each, no traceback, no checkpoint."""
    analyze = Analyze("faulty.py", broker.address, folder / "data")
    analyze.launch()
    assert analyze.wait() == 2
    sentences = [line for line in analyze.said.splitlines() if line.startswith("penstock: query ")]
    told = dict(line.removeprefix("penstock: query ").split(": ", 1) for line in sentences)
    assert told["raises"].startswith("line 17: AnalysisException: [UNRESOLVED_COLUMN")
    assert told["forgets"] == "must return a DataFrame, not NoneType: is there a return?"
    assert told["still"].endswith("it is not streaming")
    assert told["bytes_out"] == "column raw is BINARY, which JSON cannot carry: cast it, or leave it out"
    assert told["nameless"].startswith("the result keeps neither _event nor the identity columns (id)")
    assert told["learns"].endswith("(Spark runs without its machine learning: set ml = true in [analyze])")
    assert "machine learning" not in told["typo"]
    assert "topic keyed has the key owner" in analyze.said
    assert "topic keyed asks for the column owner (NOT NULL)" in analyze.said
    assert "ort" in told["sorts"]
    assert told["parts.two"] == "returns no output 'two': it returns 'one', 'too'"
    assert "parts.one" not in told
    assert told["wide"].startswith("topic plain has format='text': select one STRING column")
    assert told["nobody"].startswith("emit='all' needs a key that tells all rows apart: select every column")
    assert told["last"].startswith("emit='final': ")
    assert "give watermark=" in told["last"]
    assert "nn" in told["typo"]
    assert not list((folder / "data" / "analyze" / "checkpoints").iterdir())
    assert not [line for line in analyze.lines if line.startswith("ready")]


def test_a_dry_run_names_them_too_and_starts_nothing(tmp_path: Path) -> None:
    """Asked of Spark without a queue."""
    words = [sys.executable, "-m", "penstock", "run", str(APPS / "faulty.py"), "--dry-run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 2
    assert "penstock: query forgets: must return a DataFrame" in done.stderr
    assert "penstock: query typo: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
