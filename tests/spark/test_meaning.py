"""What a row of a result means, read from Spark's own plans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock import App
from penstock.analyze.dry_run import _spark
from penstock.analyze.frames.meaning import KeyColumn, Kind, Meaning, meaning_of
from penstock.analyze.frames.results import header_names, to_records
from penstock.config.analyze import AnalyzeConfig
from penstock.guarantee import Queue
from penstock.plan.planner import plan_app


@pytest.fixture(scope="module")
def purchases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """On a Spark that is started as a dry run starts it: another test of this process may have ended one."""
    plan = plan_app(App("meaning"), Queue())
    with _spark(plan, AnalyzeConfig(), tmp_path_factory.mktemp("spark")) as spark:
        yield _purchases(spark)
        spark.stop()
    SparkContext._gateway = SparkContext._jvm = None  # else the next Spark of this process looks for this JVM


def _purchases(spark: SparkSession) -> DataFrame:
    rows = spark.readStream.format("rate").load()
    found = rows.select(
        F.col("value").cast("string").alias("card"),
        F.lit("NL").alias("country"),
        F.lit(1.0).alias("amount"),
        F.col("timestamp").alias("at"),
    ).withWatermark("at", "1 minute")
    found.createOrReplaceTempView("purchases")
    return found


def test_a_query_without_an_aggregate_appends(purchases: DataFrame) -> None:
    for result in (purchases.select("card"), purchases.dropDuplicates(["card"]), purchases.filter("amount > 1")):
        assert meaning_of(result, ()).text == "append"
    assert meaning_of(purchases, ("card", "country")).text == "append by card, country"


def test_an_aggregate_is_keyed_by_what_it_groups_by(purchases: DataFrame) -> None:
    hour = F.window("at", "1 hour")
    wanted = {
        "upsert by card": purchases.groupBy("card").count(),
        "upsert by card, country": purchases.groupBy("card", "country").count().select("count", "country", "card"),
        "upsert by card, window.start": purchases.groupBy("card", hour).count(),
        "upsert by card, hour": purchases.groupBy("card", hour)
        .count()
        .select("card", F.col("window.start").alias("hour"), "count"),
        "upsert by till": purchases.groupBy(hour).count().select(F.col("window.end").alias("till"), "count"),
        "upsert by card, session_window.start": purchases.groupBy("card", F.session_window("at", "5 minutes")).count(),
        "upsert by owner": purchases.groupBy("card").count().withColumnRenamed("card", "owner").filter("count > 1"),
        "upsert by big": purchases.groupBy(F.upper("card").alias("big")).count(),
    }
    assert {meaning_of(result, ()).text: result for result in wanted.values()} == wanted


def test_sql_has_the_same_keys(purchases: DataFrame) -> None:
    spark = purchases.sparkSession
    hours = "SELECT card, window.start AS hour, sum(amount) AS spent FROM purchases GROUP BY card, window(at, '1 hour')"
    assert meaning_of(spark.sql(hours), ()).text == "upsert by card, hour"
    big = "SELECT upper(card) AS big, count(*) AS n FROM purchases GROUP BY upper(card) HAVING count(*) > 1"
    assert meaning_of(spark.sql(big), ()).text == "upsert by big"
    within = "WITH dear AS (SELECT card AS c, amount FROM purchases WHERE amount > 0) "
    # Behind a WITH the groups are not looked for yet; the query runs, and the topic may declare its key.
    assert meaning_of(spark.sql(within + "SELECT c, count(*) AS n FROM dear GROUP BY c"), ()).key is None
    assert meaning_of(spark.sql(within + "SELECT c FROM dear"), ()).text == "append"


def test_a_result_that_lacks_a_group_has_no_key_and_says_so(purchases: DataFrame) -> None:
    lost = purchases.groupBy("card", "country").agg(F.sum("amount").alias("spent")).select("card", "spent")
    changed = purchases.groupBy("card").count().select(F.concat("card", F.lit("!")).alias("card"), "count")
    for result in (lost, changed):
        assert meaning_of(result, ()).key is None
        assert "select every column that the query groups by" in meaning_of(result, ()).text


def test_an_aggregate_without_groups_is_one_row(purchases: DataFrame) -> None:
    assert meaning_of(purchases.agg(F.count("*").alias("n")), ()) == Meaning(Kind.UPSERT, ())


def test_the_declared_key_decides(purchases: DataFrame) -> None:
    result = purchases.groupBy("card", "country").count()
    assert meaning_of(result, ("country",)) == Meaning(Kind.UPSERT, (KeyColumn("country"),), is_declared=True)


def test_a_key_is_text_and_a_group_without_a_value_has_one(purchases: DataFrame) -> None:
    spark = purchases.sparkSession
    rows = spark.sql("SELECT * FROM VALUES ('4711', timestamp'2026-11-19 10:00:00'), (null, null) AS t(card, hour)")

    def keys(*key: KeyColumn, is_declared: bool = False) -> list[object]:
        return [row.key for row in to_records(rows, "q", Meaning(Kind.UPSERT, key, is_declared)).collect()]

    card, hour = KeyColumn("card"), KeyColumn("hour")
    assert keys(card) == ["4711", r"\N"]
    assert keys(card, hour) == ["4711|2026-11-19T10:00:00.000000Z", r"\N|\N"]
    assert keys(card, is_declared=True) == ["4711", None]
    assert keys() == ["", ""]


def test_the_headers_name_kind_and_key() -> None:
    assert header_names(Meaning(Kind.APPEND, None), keeps_event=True) == (
        "penstock-id", "penstock-time", "penstock-source", "penstock-query", "penstock-kind",
    )  # fmt: skip
    keyed = Meaning(Kind.UPSERT, (KeyColumn("card"),))
    assert header_names(keyed, keeps_event=False) == ("penstock-query", "penstock-kind", "penstock-key-columns")
