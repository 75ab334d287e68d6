"""Queries that write final rows, or their whole result after each batch."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App, Guarantee

emitting = App("emitting")
views = emitting.topic(
    "views", schema="page STRING, visitor STRING, at TIMESTAMP", key="page", event_time="at", partitions=2
)
shown = emitting.topic("shown", schema="ad STRING, cost DOUBLE, at TIMESTAMP", key="ad", event_time="at")
clicked = emitting.topic("clicked", schema="ad STRING, at TIMESTAMP", key="ad", event_time="at")
exact = emitting.topic("exact_top", guarantee=Guarantee(delivery="exactly-once"))
TOP = "SELECT page, count(*) AS views FROM STREAM(views) GROUP BY page ORDER BY views DESC, page LIMIT 2"

emitting.sql(
    "hourly",
    "SELECT page, window.start AS hour, count(*) AS views FROM STREAM(views) GROUP BY page, window(at, '1 hour')",
    watermark="10 minutes",
    emit="final",
)
emitting.sql("top", TOP)
emitting.sql("top_once", TOP, writes=exact)
emitting.sql(
    "counts", "SELECT page, count(*) AS views FROM STREAM(views) GROUP BY page HAVING views % 2 = 1", emit="all"
)
emitting.sql("three", "SELECT page, count(*) AS views FROM STREAM(views) GROUP BY page HAVING count(*) = 3", emit="all")
emitting.sql(
    "sessions",
    "SELECT visitor, count(*) AS views FROM STREAM(views) GROUP BY visitor, session_window(at, '5 minutes')",
    watermark="10 minutes",
)


emitting.sql(
    "half_hours",
    """
    SELECT page, window.start AS began, count(*) AS views
    FROM STREAM(views) GROUP BY page, window(at, '1 hour', '30 minutes')""",
    watermark="10 minutes",
    emit="final",
    late="keep",
)


@emitting.query(reads=views, writes="top_of_hour", watermark="10 minutes")
def top_of_hour(views: DataFrame) -> DataFrame:
    counts = views.groupBy(F.window("at", "1 hour"), "page").count()
    top = F.slice(F.reverse(F.array_sort(F.collect_list(F.struct("count", "page")))), 1, 2)
    return counts.groupBy("window").agg(top.alias("top")).select("window", F.posexplode("top").alias("rank", "row"))


@emitting.query(reads=[shown, clicked], writes="unclicked", watermark="10 minutes")
def unclicked(shown: DataFrame, clicked: DataFrame) -> DataFrame:
    clicks = clicked.select(F.col("ad").alias("clicked_ad"), F.col("at").alias("clicked_at"))
    soon = F.expr("ad = clicked_ad AND clicked_at BETWEEN at AND at + INTERVAL 1 HOUR")
    return shown.join(clicks, soon, "left").where("clicked_ad IS NULL").select("ad", "cost", "_event")
