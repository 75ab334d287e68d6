"""What went through the doors in, for GET /metrics. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

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
        yield f"# HELP {name}_seconds {help}"
        yield f"# TYPE {name}_seconds histogram"
        total = 0
        for bound, count in zip([*BUCKETS_MS, None], self.counts, strict=True):
            total += count
            label = "+Inf" if bound is None else f"{bound / 1000:g}"
            yield f'{name}_seconds_bucket{{le="{label}"}} {total}'
        yield f"{name}_seconds_sum {self.sum_ms / 1000:.6f}"
        yield f"{name}_seconds_count {total}"
        for which, value in (("min", self.min_ms), ("max", self.max_ms)):
            yield f"# HELP {name}_{which}_seconds The {which} of {name}_seconds."
            yield f"# TYPE {name}_{which}_seconds gauge"
            yield f"{name}_{which}_seconds {value / 1000:.6f}"


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
            yield f"# HELP penstock_edge_{name}_total {help}"
            yield f"# TYPE penstock_edge_{name}_total counter"
            for value, count in sorted(counts.items()):
                yield f'penstock_edge_{name}_total{{{label}="{value}"}} {count}'
        for name, help, number in (
            ("inflight_bytes", "Bytes of events not yet stored.", inflight_bytes),
            ("waiting", "Requests that wait for a result now.", waiting),
        ):
            yield f"# HELP penstock_edge_{name} {help}"
            yield f"# TYPE penstock_edge_{name} gauge"
            yield f"penstock_edge_{name} {number}"
        yield from self.store.lines("penstock_edge_store", "From a whole request to the queue's acknowledgement.")
        yield from self.wait.lines("penstock_edge_wait", "From a whole request to its result.")
