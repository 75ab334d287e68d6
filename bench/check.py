"""What the check of records costs: a produce request of one batch in the pure core, with and without the check."""

from __future__ import annotations

from dataclasses import dataclass

from bench.child import run_child
from bench.row import Row
from bench.scene import OURS, Scene

UNCHECKED = "unchecked"
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class CheckTrial:
    """One batch a request, one request a step; processor time, which other processes hardly move."""

    side: str
    record_bytes: int
    codec: str = "none"
    is_compiled: bool = True

    def run(self, scene: Scene) -> dict[str, float]:
        """`us` of processor time for a request, from its frame to its answer."""
        steps = scene.pace.core_requests // 100
        arguments = (self.record_bytes, _CODECS.index(self.codec), int(self.side == OURS), steps)
        return {"us": float(run_child("bench.check_load", *arguments, int(self.is_compiled))["us"])}


def check_rows() -> list[Row]:
    """Rows for record sizes, codecs, and the interpreted broker."""

    def row(name: str, title: str, goal: float | None = None, *, size: int, **how: str | bool) -> Row:
        ours, peer = (CheckTrial(side, size, **how) for side in (OURS, UNCHECKED))  # type: ignore[arg-type]
        whole = f"check of records, a batch of 16 KiB, {title}"
        return Row(name, whole, "us", ours, peer, "us", False, goal, peer="the same broker without the check")

    return [
        row("check-1KB", "records of 1 KB", 1.1, size=1000),
        row("check-100B", "records of 100 B", size=100),
        row("check-1KB-interpreted", "records of 1 KB, interpreted", size=1000, is_compiled=False),
        row("check-100B-interpreted", "records of 100 B, interpreted", size=100, is_compiled=False),
        *(row(f"check-1KB-{codec}", f"records of 1 KB, {codec}", size=1000, codec=codec) for codec in _CODECS[1:]),
    ]
