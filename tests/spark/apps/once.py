"""Queries whose every result stands once: each event, again behind that, and sums."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App, Guarantee

once = App("once")
numbers = once.topic(
    "numbers",
    schema="id STRING NOT NULL, card STRING, n INT",
    key="card",
    partitions=2,
    guarantee=Guarantee(delivery="exactly-once"),
)
copies = once.topic("copies", schema="id STRING, n INT", partitions=2)


@once.query(reads=numbers, writes=copies)
def copy(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", "n", "_event")


@once.query(reads=copies, writes="doubled")
def double(copies: DataFrame) -> DataFrame:
    return copies.select("id", (2 * F.col("n")).alias("n"))


@once.query(reads=numbers, writes="totals")
def total(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("card").agg(F.sum("n").alias("total"), F.count("*").alias("events"))
