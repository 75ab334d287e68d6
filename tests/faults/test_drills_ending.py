"""A drill that is told to end takes everything that it started with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from proof import child_environ

DEADLINE_S = 120.0


def _of_drill(folder: Path) -> list[str]:
    """The commands of living processes that name this folder or have their temporary files in it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            command = (process / "cmdline").read_text()
        except OSError:
            continue
        if os.fsencode(folder) in said and command:
            found.append(command.replace("\0", " "))
    return found


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("drill", "works"),
    [
        (("proof.abuse.abuse_test", "--connections", "10"), "proof.abuse.latency_probe client"),
        (("proof.storm", "--minutes", "5", "--no-disk", "--report", "."), "writer-c"),
    ],
)
def test_a_drill_that_is_told_to_end_leaves_no_process(drill: tuple[str, ...], works: str, tmp_path: Path) -> None:
    """SIGTERM in its midst: its broker, its proxy and its clients go with it, without a traceback."""
    with subprocess.Popen(
        [sys.executable, "-m", *drill],
        cwd=tmp_path,
        env={**child_environ(), "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            until(lambda: any(works in command for command in _of_drill(tmp_path)))
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()

    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in said
    until(lambda: _of_drill(tmp_path) == [])
