"""A running query: ours by `penstock run`, the peer's by a plain PySpark job on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.child import ROOT
from bench.path_apps import READS, WRITES
from bench.path_events import PARTITIONS
from bench.plain_job import PlainJob
from bench.scene import KAFKA, OURS, Scene
from penstock.drills.app_process import AppProcess

APPS = {"filter": "filtering", "count": "counting", "catch-up": "catching", "decide": "deciding"}
QUERIES = {"filter": "large", "count": "count", "catch-up": "count_large", "decide": "decide"}


@dataclass(frozen=True)
class Running:
    """Where a query reads, writes and commits; `check` raises if it has ended."""

    queue: str
    reads: str
    writes: str
    checkpoint: Path
    check: Callable[[], None]


@contextmanager
def running(scene: Scene, side: str, query: str, durability: str) -> Iterator[Running]:
    """The query until the end of the block; it may not be ready yet."""
    if side == OURS:
        app = our_app(scene, APPS[query])
        app.start()
        try:
            yield Running(app.queue, READS, WRITES, our_checkpoint(app, query), lambda: None)
        finally:
            app.kill()
        return
    with (
        scene.topic(KAFKA, durability, PARTITIONS) as (queue, reads),
        scene.topic(KAFKA, durability, PARTITIONS) as (_, writes),
    ):
        flags = ("--commit-s", str(scene.pace.commit_s))
        job = PlainJob(query, queue, reads, writes, scene.fresh_folder("plain"), *flags)
        job.start()
        try:
            yield Running(queue, reads, writes, job.checkpoint, job.check)
        finally:
            job.stop()


def our_app(scene: Scene, name: str, more: Mapping[str, str] | None = None) -> AppProcess:
    """One of path_apps in a folder of its own, not started yet; it commits as often as the peer."""
    environ = {**(more or {}), "PYTHONPATH": str(ROOT), "BENCH_COMMIT": f"{scene.pace.commit_s} seconds"}
    return AppProcess(f"bench.path_apps:{name}", scene.fresh_folder(name), environ=environ)


def our_checkpoint(app: AppProcess, query: str) -> Path:
    """Where Spark keeps what our query has done."""
    return app.data / "analyze" / "checkpoints" / QUERIES[query]
