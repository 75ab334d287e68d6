"""Purchases with the owner of their card, who is in a table that changes."""

import os

from pyspark.sql import DataFrame

from penstock import App, Guarantee

owned = App("owned")
purchases = owned.topic("purchases", schema="id STRING NOT NULL, card STRING", key="card")
cards = owned.table(
    "cards",
    path=os.environ.get("CARDS", "cards.csv"),
    format="csv",
    schema="card STRING NOT NULL, owner STRING",
    every="1 second",
)
owned.topic("billed", guarantee=Guarantee(delivery="exactly-once", history="90 days"))


@owned.query(reads=[cards, purchases], writes="owners")
def owner(cards: DataFrame, purchases: DataFrame) -> DataFrame:
    return purchases.join(cards, "card").select("id", "owner", "_event")


owned.sql(
    "billed",
    "SELECT p.id, c.owner, p._event FROM STREAM(purchases) p LEFT JOIN /* by card */ TABLE(cards) c ON p.card = c.card",
)
owned.sql(
    "per_owner",
    "SELECT owner, count(*) AS purchases FROM STREAM(purchases) JOIN TABLE(cards) USING (card) GROUP BY owner",
)
