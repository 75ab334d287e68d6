"""The Spark session of a run, on a JVM of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.analyze.settings import SparkSetting
from penstock.jvm.spark import SparkJvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(jvm: SparkJvm, settings: Mapping[str, SparkSetting]) -> SparkSession:
    """PySpark on a JVM that was started."""
    from pyspark.sql import SparkSession  # a moment of imports, while the JVM starts

    port, secret = jvm.gateway()
    os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = secret
    builder = SparkSession.builder
    for name, setting in settings.items():
        builder = builder.config(name, setting.value)
    return builder.getOrCreate()


def session_of_query(spark: SparkSession, settings: Mapping[str, SparkSetting]) -> SparkSession:
    """A session with settings and views of its own on the same JVM."""
    session = spark.newSession()
    for name, setting in settings.items():
        session.conf.set(name, setting.value)
    return session
