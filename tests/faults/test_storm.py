"""Real clients of three kinds on a broker that everything happens to: what they were told holds, or is convicted."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result, Violation
from penstock.errors import PenstockError
from proof.storm.client_processes import FULL
from proof.storm.fault_schedule import FIRST
from proof.storm.offset_auditor import NAME as AUDITOR
from proof.storm.run import run_storm

SECONDS = 60


@pytest.mark.timeout(600)
def test_a_storm_breaks_no_promise(tmp_path: Path) -> None:
    """Transactions are seen whole, groups miss nothing, acknowledged records stand once and in order."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))

    outcome = run_storm(tmp_path, seed, SECONDS, lambda _: None)

    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}, or: make storm MINUTES=1 SEED={seed}"
    assert outcome.is_good, "\n".join([*report_lines(outcome.verdict), *outcome.troubles[:20], repeat])
    assert [done.kind for done in outcome.done[: len(FIRST)]] == list(FIRST), repeat
    assert outcome.verdict.tally.acked > 100, repeat
    assert outcome.verdict.tally.committed > 0, repeat
    assert outcome.verdict.tally.positions > 0, repeat


@pytest.mark.timeout(600)
def test_a_storm_convicts_a_broker_that_hides_aborts(tmp_path: Path) -> None:
    """With the plant, readers of committed records are not told what was aborted; the verdict says so."""
    parts = [part for part in FULL if part.name in ("writer-c", "owner-c", "owner-k")]

    outcome = run_storm(tmp_path, 1, 8, lambda _: None, disk=False, plant="aborted-not-told", parts=parts)

    assert outcome.verdict.result is Result.INVALID
    assert Violation.ABORTED_READ in outcome.verdict.violations


@pytest.mark.timeout(300)
def test_a_storm_that_cannot_be_played_to_its_end_leaves_its_data(tmp_path: Path) -> None:
    """Also when they were on a disk of their own, which goes with it."""

    def fail(said: str) -> None:
        raise PenstockError(said)

    with pytest.raises(PenstockError, match="calm"):
        run_storm(tmp_path, 1, 0, fail, parts=FULL[:1], deeds_min=0)

    assert len(list((tmp_path / "data" / "topics").iterdir())) == 3
    assert not (tmp_path / "disk.img").exists()
    assert [thread.name for thread in threading.enumerate() if thread.name == AUDITOR] == []
