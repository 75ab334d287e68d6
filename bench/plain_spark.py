"""The peer: the same queries as a PySpark user writes them, without Penstock.

python bench/plain_spark.py filter --queue HOST:PORT --reads TOPIC --writes TOPIC --checkpoint DIR --jars JARS
"""

from __future__ import annotations

import argparse
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SCHEMA = "id STRING, card STRING, amount DOUBLE, country STRING, sent BIGINT, note STRING"
AMOUNT_MIN = 100.0
_STATE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(jars: str) -> SparkSession:
    """A local session; the slots, the shuffle and its buffer are set as a user who knows Real-Time Mode sets them."""
    settings = {
        "spark.jars": jars,
        "spark.sql.shuffle.partitions": "2",
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
        "spark.sql.streaming.stateStore.providerClass": _STATE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[6]").appName("plain")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def result(query: str, purchases: DataFrame) -> DataFrame:
    """What the query says of the purchases."""
    if query == "filter":
        return purchases.where(F.col("amount") >= AMOUNT_MIN).select("id", "card", "amount", "sent")
    if query == "count":
        return purchases.groupBy("card").agg(F.count("*").alias("count"), F.max("sent").alias("sent"))
    return purchases.where(F.col("amount") >= AMOUNT_MIN).groupBy("card").agg(F.count("*").alias("count"))


def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("query", choices=("filter", "count", "catch-up"))
    for name in ("queue", "reads", "writes", "checkpoint", "jars"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--commit-s", type=int, default=10)
    parser.add_argument("--events-max-batch", type=int, default=1_000_000)
    given = parser.parse_args()
    spark = session(given.jars)
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", given.queue)
    reader = reader.option("subscribe", given.reads).option("startingOffsets", "earliest")
    if given.query == "catch-up":
        reader = reader.option("maxOffsetsPerTrigger", given.events_max_batch)
    else:
        reader = reader.option("kafka.fetch.max.wait.ms", "10")
    purchases = reader.load().select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row")).select("row.*")
    rows = result(given.query, purchases)
    records = rows.select(F.col("card").alias("key"), F.to_json(F.struct(*rows.columns)).alias("value"))
    # Any: PySpark's types do not know trigger(realTime=…).
    writer: Any = records.writeStream.format("kafka").option("kafka.bootstrap.servers", given.queue)
    writer = writer.option("topic", given.writes).option("checkpointLocation", given.checkpoint).outputMode("update")
    if given.query != "catch-up":
        writer = writer.trigger(realTime=f"{given.commit_s} seconds")
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
