"""Our own commands as a shell runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DEADLINE_S = 60.0


def run_penstock(address: str, *args: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    command = [str(Path(sys.executable).with_name("penstock")), *args]
    environment = os.environ | {"PENSTOCK_ADDRESS": address}
    return subprocess.run(command, input=given, capture_output=True, timeout=DEADLINE_S, env=environment, check=False)


def fine(done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def refused(done: subprocess.CompletedProcess[bytes], status: int = 1) -> str:
    said = done.stderr.decode()
    assert done.returncode == status, said
    assert "Traceback" not in said
    return said
