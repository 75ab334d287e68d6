"""The table of file handles is as large as the clients that may come, before they come."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.process.file_handles import ROOM_MAX

_SCRIPT = """
import sys
from pathlib import Path
from penstock.process.file_handles import take_handles
def room():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("FDSize"))
before = room()
limit = take_handles(int(sys.argv[1]))
print(before, room(), limit, len(list(Path("/proc/self/fd").iterdir())))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells of a process's handles on Linux only")
@pytest.mark.parametrize("expected", [3_000, 10 * ROOM_MAX])
def test_room_for_all_expected_handles_is_made_at_once(expected: int) -> None:
    """Nobody who connects later waits until Linux has made a larger table; the handles themselves stay free."""
    command = [sys.executable, "-c", _SCRIPT, str(expected)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    before, after, limit, opened = map(int, said.split())
    assert before < 3_000
    assert after >= min(expected, ROOM_MAX, limit)
    assert opened < 10
