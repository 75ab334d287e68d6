"""Runs a load generator of this package in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError

ROOT = Path(__file__).resolve().parent.parent


def start_child(module: str, *arguments: object) -> subprocess.Popen[str]:
    """`python -m MODULE ARGUMENTS`; it prints one line of JSON at its end."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def result_of(child: subprocess.Popen[str], timeout_s: float) -> Any:
    """What a child printed last; it is killed if it takes longer."""
    try:
        said, _ = child.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise PenstockError(f"{child.args!r} took longer than {timeout_s:.0f} s") from None
    if child.returncode != 0:
        raise PenstockError(f"{child.args!r} ended with status {child.returncode}")
    return json.loads(said.splitlines()[-1])


def run_child(module: str, *arguments: object, timeout_s: float = 300.0) -> Any:
    """Start a child and wait for its result."""
    return result_of(start_child(module, *arguments), timeout_s)
