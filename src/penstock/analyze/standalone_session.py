"""A Spark session without a queue, with the JVM, jars and settings of a run: for checks and tests of queries."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.analyze.session import open_session
from penstock.analyze.settings import OURS, SparkSetting, session_settings
from penstock.config.analyze import AnalyzeConfig
from penstock.errors import ConfigError, PenstockError
from penstock.jvm.java import find_java
from penstock.jvm.spark_start import SparkStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession  # for those that may not import PySpark

# PySpark takes them for a JVM that still runs.
_GATEWAY_VARIABLES = ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")


class NoSparkError(PenstockError):
    """There is no Spark here that could be asked."""


@contextmanager
def standalone_session(
    app: str, config: AnalyzeConfig, data: Path, slots: int, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session of `slots` task slots, whose files are below `data`; `settings` replace ours.

    NoSparkError if there is no Spark here, ConfigError if the process has a session already: PySpark can have one JVM.
    Afterwards the process may start another one.
    """
    if (pyspark := sys.modules.get("pyspark")) is not None and pyspark.SparkContext._active_spark_context is not None:
        raise ConfigError(
            "this process has a Spark session of its own: stop it first, or give it to QueryTest as spark="
        )
    try:
        start = SparkStart(find_java(os.environ), config, data)
        jvm = start.jvm(keep_open=())
    except PenstockError as missing:
        raise NoSparkError(str(missing)) from missing
    try:
        (data / "events").mkdir()
        ours = session_settings(replace(config, ui=False), app, data, slots)
        own = {name: SparkSetting(value, OURS) for name, value in (settings or {}).items()}
        yield open_session(jvm, ours | own, compiler_yields=True)
    finally:
        start.end()
        _forget_jvm()
        jvm.end()


def _forget_jvm() -> None:
    """PySpark keeps its JVM in class attributes and variables, and a later session would look for it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for name in _GATEWAY_VARIABLES:
        os.environ.pop(name, None)
    context: Any = SparkContext
    session: Any = SparkSession
    if context._gateway is not None:
        context._gateway.shutdown()
    context._gateway = context._jvm = context._active_spark_context = None
    session._instantiatedSession = session._activeSession = None
