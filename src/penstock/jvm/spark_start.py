"""How Spark's JVM is started: with the archive of its classes; if there is none, one is made for the next time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from penstock.config.analyze import AnalyzeConfig
from penstock.jvm.class_archive import ArchiveMaking, ClassArchive
from penstock.jvm.spark import SparkJvm, spark_class_path, spark_command
from penstock.jvm.worker_output import WorkerOutput
from penstock.process.cache import cache_folder

_IMPROVE_AFTER_S = 10.0  # by then the classes of a first batch are loaded
_IMPROVE_AT_LAST_S = 300.0  # a machine that is always busy profits most from a quicker start
_CRASHED = (-6, -11, 134, 139)  # SIGABRT and SIGSEGV: what a damaged archive ends in


class SparkStart:
    """The start of one run."""

    def __init__(self, java: Path, config: AnalyzeConfig, data: Path) -> None:
        class_path = spark_class_path(with_ml=config.ml)
        self._tmp = data / "tmp"
        self._list = self._tmp / "classes.list"
        self._archive = ClassArchive(cache_folder(os.environ), java, class_path)
        log = data / "spark.log"
        self._command = spark_command(java, class_path, memory=config.memory, log=log, tmp=self._tmp)
        self._output = data / "spark.out"
        self.worker_output = WorkerOutput(self._output)
        self._jvm: SparkJvm | None = None
        self._making: ArchiveMaking | None = None
        self._began_s: float | None = None
        self._is_done = False

    def jvm(self, keep_open: Sequence[int]) -> SparkJvm:
        """Start it."""
        self._tmp.mkdir(parents=True, exist_ok=True)
        flags = self._archive.flags(self._list)
        command = [self._command[0], *flags, *self._command[1:]]
        self._jvm = SparkJvm(command, self._output, self._tmp, keep_open=keep_open)
        return self._jvm

    def improve(self, now_s: float) -> None:
        """Call it now and then while all is well: makes the archive, in its own time."""
        if self._is_done:
            return
        if self._making is not None:
            self._is_done = self._making.poll()
        elif self._began_s is None:
            self._began_s = now_s
        elif is_time_to_improve(now_s - self._began_s, os.getloadavg()[0], os.cpu_count() or 1):
            self._making = self._archive.begin(self._command, self._list)
            self._is_done = self._making is None

    def end(self) -> None:
        """Nothing is made any more; an archive with which the JVM crashed is gone."""
        if self._making is not None and not self._is_done:
            self._making.end()
        if self._jvm is not None and self._jvm.process.poll() in _CRASHED:
            self._archive.forget()


def is_time_to_improve(since_s: float, load: float, processors: int) -> bool:
    """Whether an archive may be made now: not while the first batches have too little of the machine already."""
    return since_s >= (_IMPROVE_AFTER_S if load < processors else _IMPROVE_AT_LAST_S)
