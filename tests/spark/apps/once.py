"""Queries whose every result stands once: each event, again behind that, and sums."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App, Guarantee

once = App("once")
payments = once.topic(
    "payments",
    schema="id STRING NOT NULL, card STRING, n INT",
    key="card",
    partitions=2,
    guarantee=Guarantee(delivery="exactly-once"),
)
bookings = once.topic("bookings", schema="id STRING, card STRING, n INT", key=("card", "id"), partitions=2)


@once.query(reads=payments, writes=bookings)
def copy(payments: DataFrame) -> DataFrame:
    return payments.select("id", "card", "n", "_event")


@once.query(reads=bookings, writes="doubled")
def double(bookings: DataFrame) -> DataFrame:
    return bookings.select("id", (2 * F.col("n")).alias("n"))


@once.query(reads=payments, writes="balances")
def total(payments: DataFrame) -> DataFrame:
    return payments.groupBy("card").agg(F.sum("n").alias("total"), F.count("*").alias("events"))
