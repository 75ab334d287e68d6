"""What went through the doors in, for GET /metrics. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from penstock.metrics import family, histogram, single

BUCKETS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000)


class Latency:
    """Times of one kind: how many in each bucket, least, most and sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_MS) + 1)
        self.sum_ms = 0.0
        self.min_ms = 0.0
        self.max_ms = 0.0

    def add(self, ms: float) -> None:
        """One more time."""
        self.counts[bisect_left(BUCKETS_MS, ms)] += 1
        self.sum_ms += ms
        self.min_ms = ms if not self.min_ms else min(self.min_ms, ms)
        self.max_ms = max(self.max_ms, ms)

    def lines(self, name: str, help: str) -> Iterator[str]:
        """A Prometheus histogram in seconds, and least and most as gauges."""
        bounds = [*(bound / 1000 for bound in BUCKETS_MS), None]
        yield from histogram(f"{name}_seconds", help, zip(bounds, self.counts, strict=True), self.sum_ms / 1000)
        for which, value in (("min", self.min_ms), ("max", self.max_ms)):
            yield from single(f"{name}_{which}_seconds", "gauge", f"The {which} of {name}_seconds.", value / 1000)


class Counters:
    """Everything that is counted at the doors in."""

    def __init__(self) -> None:
        self.accepted: Counter[str] = Counter()
        self.accepted_bytes: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.unstored: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.store = Latency()
        self.wait = Latency()

    def lines(self, inflight_bytes: int, waiting: int) -> Iterator[str]:
        """The Prometheus text, a line each."""
        for name, help, label, counts in (
            ("events_accepted", "Events that the queue has acknowledged, by topic.", "topic", self.accepted),
            ("accepted_bytes", "Bytes of those events.", "topic", self.accepted_bytes),
            ("events_unstored", "Events that the queue did not acknowledge in time, by topic.", "topic", self.unstored),
            ("refused", "Requests, lines, and events that the queue refuses, by reason.", "reason", self.refused),
            ("waits", "Requests that waited for a result, by outcome.", "outcome", self.waits),
        ):
            samples = [({label: value}, count) for value, count in sorted(counts.items())]
            yield from family(f"penstock_edge_{name}_total", "counter", help, samples)
        for name, help, number in (
            ("inflight_bytes", "Bytes of events not yet stored.", inflight_bytes),
            ("waiting", "Requests that wait for a result now.", waiting),
        ):
            yield from single(f"penstock_edge_{name}", "gauge", help, number)
        yield from self.store.lines("penstock_edge_store", "From a whole request to the queue's acknowledgement.")
        yield from self.wait.lines("penstock_edge_wait", "From a whole request to its result.")
