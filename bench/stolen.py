"""How much processor time the host of this virtual machine kept back: where it is much, a ratio tells of that."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Ticks(NamedTuple):
    """Of all processors, since the machine was started."""

    stolen: int
    total: int


def ticks_now(path: Path = Path("/proc/stat")) -> Ticks:
    """As Linux counts them: the first line is of all processors, its eighth number of what was stolen."""
    of_all = [int(word) for word in path.read_text().splitlines()[0].split()[1:9]]
    return Ticks(of_all[7], sum(of_all))


def stolen_percent(before: Ticks, after: Ticks) -> float:
    """Of the time between two looks."""
    passed = after.total - before.total
    return 100 * (after.stolen - before.stolen) / passed if passed else 0.0
