"""Latencies of a real-time query, inside its batches and across the ends of them. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.latency_consumer import percentile

# A commit stalls a query for about half a second; what was sent this long around one is not "inside a batch".
BEFORE_NS, AFTER_NS = 1_500_000_000, 1_500_000_000


class Sample(NamedTuple):
    """One result: when its event was sent, and how long it took, in ns."""

    sent_ns: int
    delay_ns: int


def commit_times(checkpoint: Path) -> list[int]:
    """When a query ended each batch, in ns: Spark writes one file for each."""
    files = [path for path in (checkpoint / "commits").iterdir() if path.name.isdigit()]
    return sorted(path.stat().st_mtime_ns for path in files)


def summary(samples: Sequence[Sample], commits: Sequence[int]) -> dict[str, float]:
    """Percentiles in ms inside batches (`in_`) and over everything, and how many commits that had."""
    if not samples:
        raise ValueError("nothing was measured")
    first, last = min(s.sent_ns for s in samples), max(s.sent_ns for s in samples)
    every = sorted(sample.delay_ns for sample in samples)
    inside = sorted(sample.delay_ns for sample in samples if not _is_near(sample.sent_ns, commits))
    found = {
        "boundaries": float(sum(first <= commit <= last for commit in commits)),
        "p50": percentile(every, 0.5) / 1e6,
        "p99": percentile(every, 0.99) / 1e6,
        "p999": percentile(every, 0.999) / 1e6,
        "max": every[-1] / 1e6,
    }
    if inside:
        found |= {
            "in_p50": percentile(inside, 0.5) / 1e6,
            "in_p99": percentile(inside, 0.99) / 1e6,
            "in_p999": percentile(inside, 0.999) / 1e6,
        }
    return found


def _is_near(sent_ns: int, commits: Sequence[int]) -> bool:
    at = bisect_left(commits, sent_ns - AFTER_NS)
    return at < len(commits) and commits[at] - sent_ns < BEFORE_NS
