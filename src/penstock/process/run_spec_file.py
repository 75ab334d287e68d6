"""Reads and writes the run spec, and other files that only their owner may read."""

from __future__ import annotations

from pathlib import Path

import msgspec

from penstock.plan.run_spec import RunSpec


def write_spec(spec: RunSpec, path: Path) -> None:
    """Save a spec."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, msgspec.json.encode(spec))


def write_private(path: Path, content: bytes) -> None:
    """Save what may hold a token or a password: only its owner can read it."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def read_spec(path: Path) -> RunSpec:
    """The spec at `path`."""
    return msgspec.json.decode(path.read_bytes(), type=RunSpec)
