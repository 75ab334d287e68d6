"""Settings of the queries, with their limits and the reason of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.config.setting import SECOND_MS, setting


@dataclass(frozen=True, slots=True)
class AnalyzeConfig:
    """Settings of the queries, table [analyze] of penstock.toml; Spark's own stand in [analyze.spark]."""

    master: str = setting(
        "local",
        "'local': this machine, with the task slots that the queries need; 'local[N]': with N. A Spark cluster needs "
        "spark.jars in [analyze.spark]: its executors do not get Penstock's jars yet",
        pattern=r"local(\[\d+\])?|spark://.+",
    )
    memory: str = setting("1g", "heap of the Spark driver, where local queries run")
    shuffle_partitions: int = setting(2, "partitions behind a groupBy: each needs a task slot all the time", at_least=1)
    batch_events_max: int = setting(
        1_000_000, "events of one micro-batch: three days offline must not be one batch", at_least=1
    )
    state_rows_max: int = setting(
        10_000_000, "rows of state at which a query is parked: one that grows without end must not stop the others",
        at_least=1,
    )  # fmt: skip
    restarts_max: int = setting(5, "failures of one query within restart_window_ms before it is parked", at_least=1)
    restart_window_ms: int = setting(600 * SECOND_MS, "failures longer ago are forgotten", at_least=1000)
    dead_letters_every_ms: int = setting(
        60 * SECOND_MS, "how often dead letters are looked for: each look delays real-time results for a moment",
        at_least=100,
    )  # fmt: skip
    ui: bool = setting(True, "Spark's own pages, on a free port of loopback")
    ml: bool = setting(False, "for queries that use pyspark.ml: what Spark does for it makes every start 2 s longer")
    spark: Mapping[str, str] = setting({}, "any setting of Spark, by its own name")
