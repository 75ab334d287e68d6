"""The two brokers that are asked."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from asking.connection import Connection


class PenstockNode(NamedTuple):
    """A running broker of ours."""

    address: str
    process: subprocess.Popen[str]
    data: Path


class Both(NamedTuple):
    """The same kind of connection to each broker."""

    penstock: Connection
    kafka: Connection
