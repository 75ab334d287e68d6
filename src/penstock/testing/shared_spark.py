"""The Spark session that all query tests of a process share: the first one that needs it starts it."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config.analyze import AnalyzeConfig
from penstock.config.layers import load_config

if TYPE_CHECKING:
    from penstock.analyze.standalone_session import SparkSession

_SLOTS = 2  # as many as a grouped query has partitions, unless [analyze] says otherwise
_SETTINGS = {"spark.eventLog.enabled": "false"}


class _Shared:
    """The session, and what ends with it."""

    def __init__(self) -> None:
        self.session: Any = None
        self.closing = ExitStack()


_shared = _Shared()


def shared_spark() -> SparkSession:
    """The session, with the JVM, the jars and the settings of `penstock run` in this folder.

    It ends with the process. ConfigError if the process has a Spark session that is not this one.
    """
    if _shared.session is None or _shared.session.sparkContext._jsc is None:  # a test may have stopped it
        end_shared_spark()
        _start()
    session: SparkSession = _shared.session
    return session


def end_shared_spark() -> None:
    """End the session and its JVM now; the next query test starts another one."""
    _shared.session = None
    _shared.closing.close()


def local_config() -> AnalyzeConfig:
    """The settings of queries in this folder, on this machine."""
    config, _ = load_config(Path.cwd(), os.environ, {}, AnalyzeConfig)
    return replace(config, master="local")


def _start() -> None:
    from penstock.analyze.standalone_session import standalone_session

    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="penstock-test-")))
        # Spark's workers import what the tests import.
        settings = _SETTINGS | {"spark.executorEnv.PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
        opened = standalone_session("penstock-test", local_config(), folder, _SLOTS, settings)
        _shared.session = closing.enter_context(opened)
        closing.callback(_shared.session.stop)
        _shared.closing = closing.pop_all()
    atexit.unregister(end_shared_spark)
    atexit.register(end_shared_spark)
