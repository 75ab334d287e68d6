"""Names of Spark's settings: a misspelt one, which Spark takes without a word, is named."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below these any name may be given: Hadoop, catalogs and cluster managers read them.
_OPEN = ("spark.hadoop.", "spark.sql.catalog.", "spark.executorEnv.", "spark.kubernetes.", "spark.yarn.", "spark.jars")
_CLOSE = 0.87  # "spark.exec.memory" is taken for "spark.executor.memory"


def name_faults(given: Iterable[str], known: Collection[str]) -> list[str]:
    """A sentence for each name that Spark does not know and that is close to one that it does."""
    faults = []
    for name in given:
        if name in known or name.startswith(_OPEN):
            continue
        if not name.startswith("spark."):
            faults.append(f"{name} is no setting of Spark: their names begin with spark.")
        elif close := difflib.get_close_matches(name, known, n=1, cutoff=_CLOSE):
            faults.append(f"Spark has no setting {name}, did you mean {close[0]}?")
    return faults


def setting_faults(given: Collection[str], spark: SparkSession) -> list[str]:
    """The faults of the names that an operator or a query gives; Spark is asked only if there are any."""
    return name_faults(given, _known(spark)) if given else []


def _known(spark: SparkSession) -> set[str]:
    jvm: Any = spark._jvm
    holder = jvm.java.lang.Class.forName("org.apache.spark.internal.config.ConfigEntry$")
    # Spark has no public list: 1,355 names, of which its documentation and SQL show 324.
    known = holder.getDeclaredField("knownConfigs")
    known.setAccessible(True)
    return set(known.get(None).keySet().toArray())
