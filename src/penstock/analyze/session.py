"""The Spark session of a run, on a JVM of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.analyze.app_archive import send_app_code
from penstock.analyze.function_references import refuse_driver_objects
from penstock.analyze.setting_names import setting_faults
from penstock.analyze.settings import FILE, SparkSetting
from penstock.errors import ConfigError
from penstock.jvm.spark import SparkJvm
from penstock.process.app_loader import apps, folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(jvm: SparkJvm, settings: Mapping[str, SparkSetting], *, compiler_yields: bool) -> SparkSession:
    """PySpark on a JVM that was started; ConfigError if a setting of the operator is misspelt."""
    # Moments of imports, while the JVM starts.
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    for name in ("pyspark.testing.utils", "numpy"):  # else PySpark's first call to the JVM imports them
        with suppress(ImportError):
            import_module(name)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run the python3 of the PATH
    port, secret = jvm.gateway(compiler_yields=compiler_yields)
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    conf = SparkConf()
    for name, setting in settings.items():
        conf.set(name, setting.value)
    # Not by its builder, which gives the session every setting once more, though the context has them.
    spark = SparkSession(SparkContext.getOrCreate(conf))
    # The JVM is killed at its end, which this server of PySpark's would print a trace of.
    spark.sparkContext._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    refuse_driver_objects()
    send_app_code(spark.sparkContext, apps, folders, Path(settings["spark.local.dir"].value.partition(",")[0]))
    given = [name for name, setting in settings.items() if setting.origin == FILE]
    if faults := setting_faults(given, spark):
        raise ConfigError(*(f"{FILE}: {fault}" for fault in faults))
    return spark


def session_of_query(spark: SparkSession, settings: Mapping[str, SparkSetting]) -> SparkSession:
    """A session with settings and views of its own on the same JVM."""
    session = spark.newSession()
    for name, setting in settings.items():
        session.conf.set(name, setting.value)
    return session
