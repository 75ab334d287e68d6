"""How long a query takes: least, mean and most over the last minute in which it had something to do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.events.query_status import Processing

WINDOW_MS = 60_000
_LOOKS_MAX = 120  # one a second, and some more where clocks jump


class Look(NamedTuple):
    """What one look found, in milliseconds."""

    at_ms: int
    least: float
    total: float
    events: int
    most: float


Looks = tuple[Look, ...]


def add_look(looks: Looks, at_ms: int, took_ms: Sequence[float]) -> Looks:
    """Add one look and drop those more than a minute older.

    A look later than `at_ms` is dropped, too: the clock of a batch may step back.
    """
    kept = (look for look in looks if at_ms - WINDOW_MS < look.at_ms <= at_ms)
    return (*kept, Look(at_ms, min(took_ms), sum(took_ms), len(took_ms), max(took_ms)))[-_LOOKS_MAX:]


def processing(results: Looks, batches: Looks) -> Processing | None:
    """Least, mean and most, and of what; None where nothing is known.

    `result` is the time from the acceptance of an event to its result, for results that keep `_event`. Of other
    queries it is `batch`, the time that a micro-batch takes.
    """
    looks = results or batches
    if not looks:
        return None
    mean = sum(look.total for look in looks) / sum(look.events for look in looks)
    return Processing(
        min=min(look.least for look in looks),
        avg=round(mean, 1),
        max=max(look.most for look in looks),
        of="result" if results else "batch",
    )
