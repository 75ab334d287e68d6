"""What a row of a result means, read from Spark's own plans."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.analyze.emits import EmitError, choose_emit, state_remarks
from penstock.analyze.frames.meaning import KeyColumn, Kind, Meaning, meaning_of
from penstock.analyze.frames.results import header_names, to_records
from penstock.analyze.standalone_session import standalone_session
from penstock.config.analyze import AnalyzeConfig
from penstock.plan.policies import Emit


@pytest.fixture(scope="module")
def purchases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataFrame]:
    """On a Spark that is started as a dry run starts it: another test of this process may have ended one."""
    with standalone_session("meaning", AnalyzeConfig(), tmp_path_factory.mktemp("spark"), 1) as spark:
        yield _purchases(spark)


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
    assert meaning_of(spark.sql(within + "SELECT c, count(*) AS n FROM dear GROUP BY c"), ()).text == "upsert by c"
    inside = "WITH n AS (SELECT card, count(*) AS n FROM purchases GROUP BY card) SELECT n, card AS owner FROM n"
    assert meaning_of(spark.sql(inside), ()).text == "upsert by owner"
    assert meaning_of(spark.sql("SELECT DISTINCT card, country FROM purchases"), ()).text == "upsert by card, country"
    assert meaning_of(spark.sql(within + "SELECT c FROM dear"), ()).text == "append"


def test_a_result_that_lacks_a_group_has_no_key_and_says_so(purchases: DataFrame) -> None:
    lost = purchases.groupBy("card", "country").agg(F.sum("amount").alias("spent")).select("card", "spent")
    changed = purchases.groupBy("card").count().select(F.concat("card", F.lit("!")).alias("card"), "count")
    for result in (lost, changed):
        assert meaning_of(result, ()).key is None
        assert "select every column that the query groups by" in meaning_of(result, ()).text


def test_rows_of_several_aggregates_have_no_key_of_their_own(purchases: DataFrame) -> None:
    counts = purchases.groupBy("card").count()
    both = counts.union(counts)
    assert (
        meaning_of(both, ()).text
        == "upsert without a key: rows of a union have no groups of their own: give its topic key="
    )


def test_what_is_written_is_what_spark_can_write(purchases: DataFrame) -> None:
    hourly = purchases.groupBy("card", F.window("at", "1 hour")).count()
    other = purchases.select(F.col("card").alias("c"), F.col("at").alias("then"))
    soon = F.expr("card = c AND then BETWEEN at AND at + INTERVAL 1 HOUR")
    assert choose_emit(hourly, None) == (Emit.CHANGES, None)
    assert choose_emit(hourly, Emit.FINAL).emit is Emit.FINAL
    assert choose_emit(purchases.join(other, soon, "left"), None).emit is Emit.FINAL
    assert choose_emit(hourly.orderBy("count").limit(3), None).emit is Emit.ALL
    reason = choose_emit(purchases.groupBy("card", F.session_window("at", "5 minutes")).count(), None).against_real_time
    assert reason is not None
    assert reason.startswith("emit='final': not in Real-Time Mode")
    assert "session window" in reason
    for result, asked, said in (
        (purchases.groupBy("card").count(), Emit.FINAL, "give watermark=.*or say emit='changes' or emit='all'"),
        (purchases, Emit.ALL, "say emit='changes' or emit='final'"),
        (purchases.join(other, soon, "left"), Emit.CHANGES, "say emit='final'"),
        (purchases.orderBy("at"), None, "Sorting is not supported"),
    ):
        with pytest.raises(EmitError, match=said):
            choose_emit(result, asked)
    # Spark's text goes on with how to switch its check off: results would be wrong without a word.
    chained = hourly.groupBy("card").agg(F.sum("count").alias("n"))
    with pytest.raises(EmitError) as refused:
        choose_emit(chained, Emit.CHANGES)
    assert "correctness" not in str(refused.value)


def test_rows_of_a_top_list_are_keyed_by_their_rank(purchases: DataFrame) -> None:
    top = purchases.groupBy("card").count().orderBy(F.desc("count")).limit(10)
    assert meaning_of(top, (), Emit.ALL).text == "upsert by rank"
    hourly = purchases.groupBy(F.window("at", "1 hour"), "card").count()
    assert meaning_of(hourly.orderBy("window", "count").limit(10), (), Emit.ALL).text == "upsert by window.start, rank"
    assert meaning_of(hourly.orderBy("window"), (), Emit.ALL).text == "upsert by window.start, card"
    assert meaning_of(top, ("card",), Emit.ALL).text == "upsert by card"
    assert meaning_of(hourly, (), Emit.FINAL).text == "final by window.start, card"


def test_state_that_grows_without_end_has_a_remark(purchases: DataFrame) -> None:
    spark = purchases.sparkSession
    rows = spark.readStream.format("rate").load().selectExpr("string(value) AS c", "timestamp AS then")
    timely = rows.withWatermark("then", "1 minute")
    soon = F.expr("card = c AND then BETWEEN at AND at + INTERVAL 1 HOUR")
    wanted = {
        "dropDuplicates keeps every key": [purchases.dropDuplicates(["card"])],
        "the join keeps every row": [
            purchases.join(rows, F.expr("card = c")),
            purchases.join(timely, F.expr("card = c")),
        ],
        "its windows never close": [rows.groupBy(F.window("then", "1 hour")).count()],
        "": [
            purchases.dropDuplicates(["card", "at"]),
            purchases.dropDuplicatesWithinWatermark(["card"]),
            purchases.join(timely, soon),
            purchases.groupBy(F.window("at", "1 hour")).count(),
            purchases.groupBy("card").count(),
        ],
    }
    for said, results in wanted.items():
        for result in results:
            remarks = list(state_remarks(result))
            assert bool(remarks) == bool(said), remarks
            assert all(said in remark for remark in remarks)


def test_an_aggregate_without_groups_is_one_row(purchases: DataFrame) -> None:
    assert meaning_of(purchases.agg(F.count("*").alias("n")), ()) == Meaning(Kind.UPSERT, ())


def test_the_declared_key_decides(purchases: DataFrame) -> None:
    result = purchases.groupBy("card", "country").count()
    found = meaning_of(result, ("country",))
    assert found == Meaning(Kind.UPSERT, (KeyColumn("country"),), is_declared=True, uncovered=("card",))
    assert found.remarks == ("the key= of its topic leaves out card: rows of several groups share a key",)
    assert meaning_of(result, ("country", "card")).remarks == ()
    hourly = purchases.groupBy("card", F.window("at", "1 hour")).count()
    assert meaning_of(hourly, ("card",), Emit.FINAL).kind is Kind.APPEND


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
