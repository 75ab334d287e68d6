"""The app of the data fixture. Its names and queries never change: the stored checkpoints are theirs."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App, Guarantee, sources

fixture = App("fixture")
SCHEMA = "id STRING NOT NULL, card STRING, n INT"
clicks = fixture.topic(
    "clicks", schema=SCHEMA, key="card", identity="id", partitions=2, guarantee=Guarantee(history="forever")
)
payments = fixture.topic(
    "payments",
    schema=SCHEMA,
    key="card",
    identity="id",
    partitions=2,
    guarantee=Guarantee(history="forever", delivery="exactly-once"),
)
fixture.ingest(sources.Http("/clicks"), into=clicks)
fixture.ingest(sources.Http("/payments"), into=payments)


@fixture.query(reads=clicks, writes="large")
def large(clicks: DataFrame) -> DataFrame:
    return clicks.where("n >= 10").select("id", "card", "n", "_event")


@fixture.query(reads=clicks, writes="seen")
def seen(clicks: DataFrame) -> DataFrame:
    return clicks.groupBy("card").agg(F.count("*").alias("clicks"))


@fixture.query(reads=payments, writes="totals")
def totals(payments: DataFrame) -> DataFrame:
    return payments.groupBy("card").agg(F.sum("n").alias("total"), F.count("*").alias("payments"))


fixture.deliver("seen")
fixture.deliver("totals")
