"""Queries whose Python functions fail, each in its own way."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App, Guarantee

raising = App("raising")
numbers = raising.topic("numbers", schema="id STRING NOT NULL, n INT", key="id", identity="id")
raising.topic("whole", schema="id STRING", key="id", guarantee=Guarantee(delivery="exactly-once"))


@raising.query(reads=numbers, writes="shares")
def divides(numbers: DataFrame) -> DataFrame:
    def share(n: int) -> float:
        return 1 / n

    return numbers.select("id", F.udf(share, "double")("n").alias("share"), "_event")


@raising.query(reads=numbers, writes="whole")
def divides_once(numbers: DataFrame) -> DataFrame:
    def share(n: int) -> float:
        return 2 / n

    return numbers.select("id", F.udf(share, "double")("n").alias("share"), "_event")


@raising.query(reads=numbers, writes="imported")
def imports(numbers: DataFrame) -> DataFrame:
    def score(n: int) -> int:
        from no_such_module import score as scored

        return int(scored(n))

    return numbers.select("id", F.udf(score, "int")("n").alias("score"), "_event")


@raising.query(reads=numbers, writes="died")
def dies(numbers: DataFrame) -> DataFrame:
    def call(n: int) -> int:
        import os
        import sys

        sys.stderr.write("the native library ran out of luck\n")
        sys.stderr.flush()
        os._exit(3)

    return numbers.select("id", F.udf(call, "int")("n").alias("n"), "_event")
