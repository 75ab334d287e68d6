"""Queries to be tested: SQL and functions, with and without an aggregate."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

from penstock import App

spending = App("spending")

purchases = spending.topic(
    "purchases",
    schema="id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE, at TIMESTAMP",
    event_time="at",
)
refunds = spending.topic("refunds", schema="purchase STRING, at TIMESTAMP", event_time="at")

spending.sql("big", "SELECT id, amount, _event FROM STREAM(purchases) WHERE amount > 500")


@spending.query(reads=purchases, writes="spent", watermark="10 minutes")
def spent_per_hour(purchases: DataFrame) -> DataFrame:
    hours = purchases.groupBy("card", F.window("at", "1 hour")).agg(F.sum("amount").alias("spent"))
    return hours.select("card", F.col("window.start").alias("hour"), "spent")


@spending.query(reads=purchases, writes="once", watermark="10 minutes")
def once(purchases: DataFrame) -> DataFrame:
    return purchases.dropDuplicatesWithinWatermark(["id"]).select("id", "_event")


@spending.query(reads=[purchases, refunds], writes="returned", watermark="1 hour")
def returned(purchases: DataFrame, refunds: DataFrame) -> DataFrame:
    bought = purchases.select("id", "card", F.col("at").alias("bought"))
    given = refunds.select("purchase", F.col("at").alias("given"), "_event")
    near = F.col("given").between(F.col("bought"), F.col("bought") + F.expr("INTERVAL 1 HOUR"))
    return bought.join(given, (F.col("id") == F.col("purchase")) & near).select("id", "card", "_event")


def _share(amount: Column) -> Column:
    return udf(lambda value: 1 / value, "double", useArrow=False)(amount)


@spending.query(reads=purchases, writes="shares")
def share(purchases: DataFrame) -> DataFrame:
    return purchases.select("id", _share(F.col("amount")).alias("share"), "_event")


@spending.query(reads=purchases, writes="headed")
def headed(purchases: DataFrame) -> DataFrame:
    return purchases.select("_event.*", F.get("_headers", F.lit(1))["key"].alias("second"), "_event")


@spending.query(reads=purchases, writes="ordered")
def refused(purchases: DataFrame) -> DataFrame:
    return purchases.orderBy("amount").select("id", "_event")
