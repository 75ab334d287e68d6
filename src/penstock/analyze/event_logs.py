"""Keeps Spark's event logs within bounds: Spark itself never deletes one."""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path

_RUNS_MAX = 5
_PARTS_MAX = 8  # of the run under way, 10 MB each


def prune_event_logs(folder: Path) -> None:
    """Delete the logs of older runs, and the oldest parts of a long one."""
    runs = sorted(folder.glob("eventlog_v2_*"), key=lambda path: path.stat().st_mtime)
    for old in runs[:-_RUNS_MAX]:
        shutil.rmtree(old, ignore_errors=True)
    for run in runs[-1:]:
        parts = sorted((_number(part.name), part) for part in run.glob("events_*"))
        for _, part in parts[:-_PARTS_MAX]:
            with suppress(OSError):
                part.unlink()


def _number(name: str) -> int:
    found = re.match(r"events_(\d+)_", name)
    return int(found[1]) if found else 0
