"""Decides each purchase by its amount, its country and what the card spent in the same hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock import App, Guarantee, sources

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

AMOUNT_MAX = 5_000.0  # no single purchase beyond this
ABROAD_MAX = 900.0  # nor beyond this in a country that is not the card's
HOUR_MAX = 3_000.0  # nor more than this of one card in one hour
HOME = "NL"  # the country of a card whose purchase names none
LATE_MAX = "1 hour"  # a purchase that comes later than this after it happened is not decided

fraud = App("fraud")

purchases = fraud.topic(
    "purchases",
    schema="id STRING NOT NULL, card STRING NOT NULL, amount DOUBLE NOT NULL, country STRING, home STRING, "
    "at TIMESTAMP NOT NULL",
    key="card",  # all purchases of a card in one partition: their order is the order of the decisions
    event_time="at",
    identity="id",
    partitions=2,
    guarantee=Guarantee(outage="costly", loss="none", history="90 days", delivery="at-least-once"),
    example={
        "id": "p-1",
        "card": "card-0042",
        "amount": 950.0,
        "country": "US",
        "home": "NL",
        "at": "2026-11-01T12:00:00Z",
    },
)
fraud.ingest(sources.Http("/purchases"), into=purchases)

decisions = fraud.topic(
    "decisions",
    schema="id STRING, card STRING, amount DOUBLE, country STRING, decision STRING, reason STRING",
    key="card",
    identity="id",
    partitions=2,
)


@fraud.query(reads=purchases, writes=decisions, mode="realtime", watermark="2 hours")
def decide(purchases: DataFrame) -> DataFrame:
    """One decision a purchase. A purchase that comes again is decided as it was the first time.

    Lateness is computed from the purchase's own timestamps, not from the watermark. The watermark is larger because a
    purchase may be dated one hour ahead.
    """
    from pyspark.sql import functions as F

    in_time = purchases.where(F.col("at") >= F.col("_event.time") - F.expr(f"INTERVAL {LATE_MAX}"))
    copy = F.struct("_event.offset", "id", "amount", "country", "home")
    seen = in_time.groupBy("card", F.window("at", "1 hour")).agg(
        F.max_by(F.struct("id", "_event"), "_event.offset").alias("this"), F.collect_list(copy).alias("seen")
    )
    home = F.coalesce("first.home", F.lit(HOME))
    reason = (
        F.when(F.col("first.amount") > AMOUNT_MAX, "amount")
        .when((F.col("first.country") != home) & (F.col("first.amount") > ABROAD_MAX), "abroad")
        .when(F.col("spent") > HOUR_MAX, F.format_string("%.2f spent in the hour", "spent"))
    )
    return (
        seen.withColumn("first", _first())
        .withColumn("spent", _spent())
        .withColumn("reason", reason)
        .select(
            "this.id",
            "card",
            "first.amount",
            "first.country",
            F.when(F.col("reason").isNull(), "approved").otherwise("declined").alias("decision"),
            "reason",
            "this._event",
        )
    )


def _first() -> Column:
    """This purchase as it came the first time: structs are compared by their first field, the offset."""
    from pyspark.sql import functions as F

    return F.array_min(F.filter("seen", lambda one: one["id"] == F.col("this.id")))


def _spent() -> Column:
    """What the card spent in the hour up to and with this purchase; one that came twice counts once."""
    from pyspark.sql import functions as F

    seen = F.col("seen")

    def counts(one: Column) -> Column:
        earlier = F.exists(seen, lambda other: (other["id"] == one["id"]) & (other["offset"] < one["offset"]))
        return (one["offset"] <= F.col("first.offset")) & ~earlier

    return F.aggregate(F.filter(seen, counts), F.lit(0.0), lambda total, one: total + one["amount"])


fraud.deliver(decisions, at="/live/decisions", slow_client="disconnect", backlog_max=10_000)
