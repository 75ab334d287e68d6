"""plain_spark.py as a process: the peer of the queries."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from penstock.drills.app_process import descendants
from penstock.errors import PenstockError
from penstock.jvm.jars import provide_jars
from penstock.jvm.spark import SPARK_LOCK
from penstock.process.cache import cache_folder

_SCRIPT = Path(__file__).with_name("plain_spark.py")
_END_WITHIN_S = 30.0


class PlainJob:
    """A PySpark job on a queue; `started_at` is the monotonic time at which the process was asked for."""

    def __init__(self, query: str, queue: str, reads: str, writes: str, folder: Path, *flags: str) -> None:
        self.checkpoint = folder / "checkpoint"
        self._folder = folder
        jars = ",".join(map(str, provide_jars(SPARK_LOCK, cache_folder(os.environ))))
        self._command = [
            *(sys.executable, str(_SCRIPT), query, "--queue", queue, "--reads", reads, "--writes", writes),
            *("--checkpoint", str(self.checkpoint), "--jars", jars, *flags),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0

    def start(self) -> None:
        """Start it; it is of use once its first result is read."""
        self._folder.mkdir(parents=True, exist_ok=True)
        environ = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        with (self._folder / "job.log").open("ab") as log:
            self.started_at = time.monotonic()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, cwd=self._folder
            )

    def check(self) -> None:
        """PenstockError with its last words if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            said = (self._folder / "job.log").read_text(errors="replace")[-3000:]
            raise PenstockError(f"the plain job ended with status {self._process.returncode}: {said}")

    def stop(self) -> None:
        """End it and its JVM at once: what it did is thrown away."""
        process, self._process = self._process, None
        if process is None:
            return
        family = descendants(process.pid)
        for pid in (process.pid, *family):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        process.wait(_END_WITHIN_S)
