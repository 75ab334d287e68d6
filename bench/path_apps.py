"""The apps of the whole path: `penstock run bench/path_apps.py:NAME`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.path_events import AMOUNT_MIN, PARTITIONS, SCHEMA
from penstock import App, sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READS, WRITES = "purchases", "results"
EVERY = os.environ.get("BENCH_COMMIT", "10 seconds")  # given by path_run to every process of a run


def _app(name: str) -> App:
    app = App(name)
    app.topic(READS, schema=SCHEMA, key="card", partitions=PARTITIONS)
    app.topic(WRITES, key="card", partitions=PARTITIONS)
    return app


filtering, counting, catching, deciding = map(_app, ("filtering", "counting", "catching", "deciding"))
deciding.ingest(sources.Http(f"/{READS}"), into=READS)

collecting = App("collecting")
collecting.topic(READS, schema=SCHEMA, key="card", partitions=PARTITIONS)
collecting.ingest(sources.Http(f"/{READS}"), into=READS)

pushing = App("pushing")
pushing.topic(WRITES, partitions=PARTITIONS)
pushing.deliver(WRITES)


@filtering.query(reads=READS, writes=WRITES, mode="realtime", every=EVERY)
def large(purchases: DataFrame) -> DataFrame:
    """Filter and project."""
    return purchases.where(purchases.amount >= AMOUNT_MIN).select("id", "card", "amount", "sent", "_event")


@counting.query(reads=READS, writes=WRITES, mode="realtime", every=EVERY)
def count(purchases: DataFrame) -> DataFrame:
    """Count by key."""
    from pyspark.sql import functions as F

    return purchases.groupBy("card").agg(F.count("*").alias("count"), F.max("sent").alias("sent"))


@catching.query(reads=READS, writes=WRITES, mode="microbatch")
def count_large(purchases: DataFrame) -> DataFrame:
    """Filter and count by key."""
    from pyspark.sql import functions as F

    large = purchases.where(purchases.amount >= AMOUNT_MIN)
    return large.groupBy("card").agg(F.count("*").alias("count"))


@deciding.query(reads=READS, writes=WRITES, mode="realtime", every=EVERY)
def decide(purchases: DataFrame) -> DataFrame:
    """One decision a purchase."""
    from pyspark.sql import functions as F

    risky = (F.col("amount") > 900) & (F.col("country") != "NL")
    return purchases.select("id", "card", F.when(risky, "declined").otherwise("approved").alias("decision"), "_event")
