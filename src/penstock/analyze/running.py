"""All queries of a run: Spark is started while the app is read, then every query is looked after until the end."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from penstock.analyze.start import SparkStart
from penstock.client.lease import UNSAFE_AFTER_S
from penstock.errors import ConfigError
from penstock.jvm.java import find_java
from penstock.jvm.spark import SparkJvm
from penstock.orders import Orders
from penstock.run_spec import RunSpec

_LOCK_DEADLINE_S = 30.0
_LEASE_LOOK_S = 0.2


def run_queries(spec: RunSpec, orders: Orders | None) -> int:
    """Run the app's queries until SIGTERM; the exit status. With `orders`, only while the lease of the app is held."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, _give_up)  # while Spark starts nothing is under way that would have to end well
    data = Path(spec.data, "analyze")
    data.mkdir(parents=True, exist_ok=True)
    with _only_one(data / "lock") as lock:
        shutil.rmtree(data / "tmp", ignore_errors=True)
        start = SparkStart(find_java(os.environ), spec.analyze, data)
        jvm = start.jvm(keep_open=[lock.fileno()])
        sys.stdout.write(f"starting Spark, whose log is {data / 'spark.log'}\n")
        sys.stdout.flush()
        try:
            # The JVM starts while the app is read: neither needs the other. For the same reason these imports are here.
            from penstock.loading import load_app
            from penstock.plan import plan_app

            plan = plan_app(load_app(spec.app), spec.kind)
            from penstock.analyze.conductor import Conductor

            if orders is not None:
                threading.Thread(target=_end_when_unleased, args=(orders, jvm), name="lease", daemon=True).start()
            conductor = Conductor(spec, plan, data, jvm, start, orders)
            signal.signal(signal.SIGTERM, lambda *_: stopping.set())
            return conductor.run(stopping)
        finally:
            start.end()
            jvm.end()


def _end_when_unleased(orders: Orders, jvm: SparkJvm) -> None:
    """Kill Spark and this process once the lease is not renewed: soon another run may write the same results."""
    while orders.renewed_s is None or time.monotonic() - orders.renewed_s < UNSAFE_AFTER_S:
        time.sleep(_LEASE_LOOK_S)
    jvm.process.kill()
    sys.stderr.write(f"penstock: the lease of the app was not renewed for {UNSAFE_AFTER_S:.0f} s: queries stop\n")
    sys.stderr.flush()
    os._exit(1)


def _give_up(*_: object) -> None:
    raise SystemExit(0)


@contextmanager
def _only_one(path: Path) -> Iterator[IO[str]]:
    """The lock that an earlier run, or its JVM, may still hold for a moment: two of them would write the same twice."""
    with path.open("w") as file:
        deadline = time.monotonic() + _LOCK_DEADLINE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ConfigError(f"another process runs queries on {path.parent}: stop it first") from None
                time.sleep(0.05)
        yield file
