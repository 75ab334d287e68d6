"""One of each kind of query."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App

shop = App("shop")

purchases = shop.topic(
    "purchases",
    schema="id STRING NOT NULL, card STRING, amount DOUBLE, country STRING, at TIMESTAMP",
    key="card",
    event_time="at",
    identity="id",
    partitions=2,
)
refunds = shop.topic("refunds", schema="id STRING NOT NULL, purchase STRING, at TIMESTAMP", event_time="at")
shop.topic("decisions", key="id", partitions=2)


@shop.query(reads=purchases, writes="decisions")
def decide(purchases: DataFrame) -> DataFrame:
    risky = (F.col("amount") > 900) & (F.col("country") != "NL")
    decision = F.when(risky, "declined").otherwise("approved")
    return purchases.select("id", "_event", decision.alias("decision"), F.lit(None).cast("string").alias("note"))


@shop.query(reads=purchases, writes="spend")
def spend(purchases: DataFrame) -> DataFrame:
    return purchases.groupBy("card").agg(
        F.sum("amount").alias("spent"), F.max_by("_event", F.col("_event.offset")).alias("_event")
    )


shop.sql("big", "SELECT id, amount, _event FROM STREAM(purchases) WHERE amount > 500")


@shop.query(reads=[purchases, refunds], writes="returned", watermark="1 hour")
def returned(purchases: DataFrame, refunds: DataFrame) -> DataFrame:
    bought = purchases.select(F.col("id").alias("purchase"), "card", F.col("at").alias("bought"))
    given = refunds.select("purchase", F.col("at").alias("given"), F.col("_event"))
    near = F.col("given").between(F.col("bought"), F.col("bought") + F.expr("INTERVAL 1 HOUR"))
    return (
        bought.alias("b")
        .join(given.alias("g"), (F.col("b.purchase") == F.col("g.purchase")) & near)
        .select("b.purchase", "card", "_event")
    )


@shop.query(reads=purchases, writes="broken")
def fails(purchases: DataFrame) -> DataFrame:
    return purchases.select(F.col("card").cast("int").alias("card"), "_event")
