"""Real clients of three kinds on a broker that everything happens to: what they were told holds."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from penstock.assure.report import report_lines
from penstock.drills.storm.run import run_storm

SECONDS = 30


@pytest.mark.timeout(420)
def test_a_storm_breaks_no_promise(tmp_path: Path) -> None:
    """Transactions are seen whole, groups miss nothing, acknowledged records stand once and in order."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))

    outcome = run_storm(tmp_path, seed, SECONDS, lambda _: None)

    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}, or: make storm MINUTES=0.6 SEED={seed}"
    assert outcome.is_good, "\n".join([*report_lines(outcome.verdict), *outcome.troubles[:20], repeat])
    assert outcome.done[0].kind == "kill-broker", repeat
    assert len(outcome.done) >= 3, repeat
    assert outcome.verdict.tally.acked > 100, repeat
    assert outcome.verdict.tally.committed > 0, repeat
    assert outcome.verdict.tally.positions > 0, repeat
