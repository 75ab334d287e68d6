"""The Spark session of a run, on a JVM of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from penstock.analyze.setting_names import setting_faults
from penstock.analyze.settings import FILE, SparkSetting
from penstock.errors import ConfigError
from penstock.jvm.spark import SparkJvm
from penstock.process.app_loader import MODULE_NAME, folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(jvm: SparkJvm, settings: Mapping[str, SparkSetting], *, compiler_yields: bool) -> SparkSession:
    """PySpark on a JVM that was started; ConfigError if a setting of the operator is misspelt."""
    # Moments of imports, while the JVM starts.
    from pyspark import SparkConf, SparkContext, cloudpickle
    from pyspark.sql import SparkSession

    for name in ("pyspark.testing.utils", "numpy"):  # else PySpark's first call to the JVM imports them
        with suppress(ImportError):
            import_module(name)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers run the python3 of the PATH
    if (app := sys.modules.get(MODULE_NAME)) is not None:
        # Workers cannot import the file of an app: its functions and classes travel whole.
        cloudpickle.register_pickle_by_value(app)  # type: ignore[no-untyped-call]  # it has no types
    port, secret = jvm.gateway(compiler_yields=compiler_yields)
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    conf = SparkConf()
    for name, setting in settings.items():
        conf.set(name, setting.value)
    conf.setIfMissing("spark.executorEnv.PYTHONPATH", os.pathsep.join(folders))  # what lies beside the app
    # Not by its builder, which gives the session every setting once more, though the context has them.
    spark = SparkSession(SparkContext.getOrCreate(conf))
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
