"""What the supervisor tells its children: one file, written before they start."""

from __future__ import annotations

from pathlib import Path

import msgspec

from penstock.config import AnalyzeConfig, EdgeConfig
from penstock.guarantee import Queue

CHECKED_FIRST = "--checked-first"  # for the edge: take nothing before the supervisor says that the queries can run

LEASED = "--leased"  # for analyze: write nothing but while the supervisor says that the lease of the app is held


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an app."""

    app: str  # as load_app takes it, with an absolute path
    data: str  # absolute
    queue: str  # HOST:PORT[,HOST:PORT…]
    kind: Queue
    edge: EdgeConfig
    analyze: AnalyzeConfig


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
