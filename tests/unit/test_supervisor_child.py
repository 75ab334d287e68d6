"""A child of the supervisor: the log that is named after its end says what it did last, and how it ended."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from penstock.supervisor import child
from penstock.supervisor.child import Child

DEADLINE_S = 60.0
DIES = """
import os, signal, sys
print("ready", flush=True)
print("query decide: running, realtime", flush=True)
sys.stderr.write("the last word\\n")
sys.stderr.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def log_after_death(folder: Path, code: str) -> list[str]:
    """The lines of the log that is named when a child with this code has ended."""
    said: list[str] = []

    def say(_: str, text: str) -> None:
        said.append(text)
        if "starts again" in text:
            kept.kill()  # once is enough: it is not started again

    kept = Child("analyze", [sys.executable, "-c", code], folder, say)

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await kept.keep()

    asyncio.run(run())
    named = re.fullmatch(r"was ended by SIGKILL; starts again \(log: (.+)\)", said[-1])
    assert named is not None, said
    return Path(named[1]).read_text().splitlines()


def test_the_log_of_a_killed_child_has_its_start_its_output_and_its_end(tmp_path: Path) -> None:
    lines = log_after_death(tmp_path, DIES)
    assert re.search(r"INFO process started name=analyze pid=\d+$", lines[0])
    assert any(re.fullmatch(r"\S+Z INFO query decide: running, realtime", line) for line in lines)
    assert "the last word" in lines
    assert re.search(r'ERROR process ended pid=\d+ how="was ended by SIGKILL" lived_s=[\d.]+$', lines[-1])


def test_the_log_that_is_named_has_the_last_output_though_it_was_just_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LOG_BYTES_MAX", 0)
    lines = log_after_death(tmp_path, DIES)
    assert len(lines) == 2, "the last line of output, and the end"
    assert "process ended" in lines[-1]
