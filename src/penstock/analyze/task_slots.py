"""How many tasks Spark can run at once: none without executors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TaskSlots:
    """Asks Spark's scheduler: a call of less than a millisecond, which takes nothing from the queries."""

    def __init__(self, spark: SparkSession) -> None:
        # PySpark offers no such number; Spark itself compares this one with what a real-time query needs.
        self._context: Any = spark.sparkContext._jsc.sc()
        self._profile: Any = self._context.resourceProfileManager().defaultResourceProfile()
        # Then executors come with work, and none is no fault.
        self._is_dynamic = spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true"

    def count(self) -> int | None:
        """Task slots of all executors, free or not; None where their number follows the work, or Spark is gone."""
        from py4j.protocol import Py4JError

        if self._is_dynamic:
            return None
        try:
            return int(self._context.maxNumConcurrentTasks(self._profile))
        except (Py4JError, OSError):  # the end of its JVM is noticed elsewhere
            return None
