"""Reads a file of its package."""

from pathlib import Path

_WEIGHTS = [float(line) for line in (Path(__file__).parent / "weights.txt").read_text().split()]


def weight(n: int) -> float:
    return _WEIGHTS[n % len(_WEIGHTS)]
