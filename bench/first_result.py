"""Time from the start of the process to the first result read."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench.child import result_of, run_child, start_child
from bench.path_apps import READS, WRITES
from bench.path_events import PARTITIONS
from bench.path_run import our_app
from bench.plain_job import PlainJob
from bench.prepared import prepared_data
from bench.scene import KAFKA, NO_FSYNC, OURS, Scene, say
from penstock.errors import PenstockError
from penstock.jvm.class_archive import ClassArchive
from penstock.jvm.java import find_java
from penstock.jvm.spark import spark_class_path
from penstock.process.cache import cache_folder

_EVENTS = 10
_WITHIN_S = 180.0


@dataclass(frozen=True)
class FirstResultTrial:
    """Filter and project in real time; topics and ten events are there, Kafka runs, our broker does not yet."""

    side: str
    with_archive: bool = True

    def run(self, scene: Scene) -> dict[str, float]:
        """`seconds`."""
        if self.side == OURS:
            if self.with_archive:
                _provide_archive(scene)
            return self._run_ours(scene)
        with (
            scene.topic(KAFKA, NO_FSYNC, PARTITIONS) as (queue, reads),
            scene.topic(KAFKA, NO_FSYNC, PARTITIONS) as (_, writes),
        ):
            run_child("bench.fill", queue, reads, _EVENTS)
            reader = start_child("bench.result_reader", queue, writes, 0)
            job = PlainJob("filter", queue, reads, writes, scene.fresh_folder("plain"))
            job.start()
            try:
                return {"seconds": float(result_of(reader, _WITHIN_S)["at"]) - job.started_at}
            finally:
                job.stop()

    def _run_ours(self, scene: Scene) -> dict[str, float]:
        environ = {} if self.with_archive else {"PENSTOCK_CACHE": str(_cache_without_archive(scene))}
        app = our_app(scene, "filtering", environ)
        with prepared_data("filtering", app.data) as queue:
            run_child("bench.fill", queue, READS, _EVENTS)
        reader = start_child("bench.result_reader", app.queue, WRITES, 0)
        started_at = time.monotonic()
        app.start(ready=False)
        try:
            return {"seconds": float(result_of(reader, _WITHIN_S)["at"]) - started_at}
        finally:
            app.kill()


def _cache_without_archive(scene: Scene) -> Path:
    folder = scene.fresh_folder("cache")
    (folder / "jars").symlink_to(cache_folder(os.environ) / "jars")
    return folder


def _provide_archive(scene: Scene) -> None:
    """The first start on a machine makes it in passing."""
    archive = ClassArchive(cache_folder(os.environ), find_java(os.environ), spark_class_path())
    if archive.path.exists():
        return
    say("  the archive of Spark's classes is made")
    deadline = time.monotonic() + _WITHIN_S
    with our_app(scene, "filtering"):
        while not archive.path.exists():
            if time.monotonic() > deadline:
                raise PenstockError(f"no archive was made within {_WITHIN_S:.0f} s")
            time.sleep(0.1)
