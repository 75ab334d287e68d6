"""A load of POST requests by wrk in a closed loop: each connection sends again when it was answered."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.child import result_of
from penstock.errors import PenstockError

_SCRIPT = Path(__file__).with_suffix(".lua")
_ACCEPTED = "202"
_TIMEOUT_S = 10  # wrk leaves a slower answer out of its percentiles and counts it as an error


def find_wrk() -> str:
    """The path of wrk; PenstockError if it is not installed."""
    found = shutil.which("wrk")
    if found is None:
        raise PenstockError("the rows of HTTP need wrk: install it, on Debian with `apt install wrk`")
    return found


def post(url: str, bodies: Path, kind: str, connections: int, seconds: float) -> dict[str, float]:
    """`requests_per_s`, `p50_ms`, `p99_ms`; PenstockError unless every answer was 202. `bodies`: see write_bodies."""
    command = [find_wrk(), "--threads", "1", "--connections", str(connections), "--duration", f"{round(seconds)}s"]
    command += ["--timeout", f"{_TIMEOUT_S}s", "--script", str(_SCRIPT), url, "--", kind, str(bodies)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return checked(result_of(child, seconds + 2 * _TIMEOUT_S), connections)


def write_bodies(path: Path, bodies: Sequence[bytes]) -> Path:
    """The file that wrk.lua reads; a body may not hold a blank line."""
    path.write_bytes(b"".join(body + b"\n\n" for body in bodies))
    return path


def checked(report: dict[str, Any], connections: int) -> dict[str, float]:
    """The numbers of a report of wrk.lua; PenstockError if a request was refused, failed or got no answer."""
    statuses = report.pop("statuses")
    if set(statuses) != {_ACCEPTED}:
        raise PenstockError(f"not every answer was {_ACCEPTED}: {json.dumps(statuses)}")
    errors, unanswered = report.pop("errors"), report.pop("unanswered")
    # The end of a run cuts one request of each connection off, and wrk builds one that it does not send.
    if errors or unanswered > connections + 1:
        raise PenstockError(f"{errors} requests failed, {unanswered} of {connections} connections got no answer")
    return report
