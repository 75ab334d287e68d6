"""Two queries whose results can be checked against what was sent."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App, Guarantee

counting = App("counting")
often = Guarantee(outage="costly")
numbers = counting.topic("numbers", schema="id STRING NOT NULL, card STRING, n INT", key="card", partitions=2)
counting.topic("copies", guarantee=often, partitions=2)


@counting.query(reads=numbers, writes="copies")
def copy(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", "n", "_event")


@counting.query(reads=numbers, writes="totals")
def total(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("card").agg(F.sum("n").alias("total"), F.count("*").alias("events"))


@counting.query(reads=numbers, writes="joined")
def refused_by_spark(numbers: DataFrame) -> DataFrame:
    names = numbers.sparkSession.range(10).select(F.col("id").cast("int").alias("n"), F.lit("name").alias("name"))
    return numbers.join(names.hint("merge"), "n").select("id", "name", "_event")
