"""What proves the product and is not installed: simulator, fault and abuse tests, Apache Kafka as a reference.

sim/     a whole node in a simulator, under one seed
storm/   real clients on a real broker under faults
abuse/   malformed frames and slow clients
oracle/  Apache Kafka as a reference
"""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = str(Path(__file__).parent.parent)


def child_environ() -> dict[str, str]:
    """The environment of a process that runs a module of `proof`, which no installation makes known."""
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([_ROOT, known]) if known else _ROOT}
