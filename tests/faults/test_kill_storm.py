"""A broker killed with -9 again and again under load keeps every promise it made."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from penstock.assure.report import report_lines
from penstock.drills.storm import run_storm

KILLS = 12


@pytest.mark.timeout(200)
def test_a_kill_storm_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """Clients go on by themselves through twelve kills, and the history checker finds nothing."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))

    outcome = run_storm(tmp_path, seed, 60, lambda _: None, kills_max=KILLS)

    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}, or: make storm MINUTES=1 SEED={seed}"
    assert outcome.is_good, "\n".join([*report_lines(outcome.verdict), *outcome.troubles[:20], repeat])
    assert outcome.kills >= 6, repeat
    assert outcome.acked > 1000, repeat
