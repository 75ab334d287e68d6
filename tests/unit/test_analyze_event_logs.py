"""Spark's event logs stay within bounds."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.analyze.event_logs import prune_event_logs


def test_the_newest_runs_and_the_newest_parts_of_the_last_one_stay(tmp_path: Path) -> None:
    for run in range(9):
        folder = tmp_path / f"eventlog_v2_local-{run}"
        folder.mkdir()
        for part in range(1, 21):
            (folder / f"events_{part}_local-{run}").write_text("{}")
        (folder / "appstatus_local.inprogress").write_text("")
        os.utime(folder, (run, run))
    prune_event_logs(tmp_path)
    assert sorted(path.name[-1] for path in tmp_path.iterdir()) == ["4", "5", "6", "7", "8"]
    last = tmp_path / "eventlog_v2_local-8"
    assert {int(path.name.split("_")[1]) for path in last.glob("events_*")} == set(range(13, 21))
    assert (last / "appstatus_local.inprogress").exists()


def test_no_logs_are_no_fault(tmp_path: Path) -> None:
    prune_event_logs(tmp_path)
