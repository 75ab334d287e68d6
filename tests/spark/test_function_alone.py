"""A query's function is plain PySpark: it runs on a batch DataFrame, without Penstock or a queue."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from driving.analyze import APPS
from pyspark import SparkContext

from penstock.analyze.frames.spark_types import struct_words
from penstock.analyze.session import open_session
from penstock.analyze.settings import session_settings
from penstock.config.analyze import AnalyzeConfig
from penstock.events.schema import parse_schema
from penstock.events.type_json import type_json
from penstock.jvm.java import find_java
from penstock.jvm.spark import SparkJvm, spark_class_path, spark_command
from penstock.process.app_loader import load_app

if TYPE_CHECKING:
    from pyspark import SparkContext
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[SparkSession]:
    for name in ("events", "tmp"):
        (folder / name).mkdir()
    jars = spark_class_path(with_ml=True)
    command = spark_command(find_java(os.environ), jars, memory="512m", log=folder / "spark.log", tmp=folder / "tmp")
    jvm = SparkJvm(command, folder / "spark.out", folder / "tmp")
    session = open_session(jvm, session_settings(AnalyzeConfig(ui=False), "alone", folder, 2), compiler_yields=True)
    yield session
    session.stop()
    jvm.end()
    SparkContext._gateway = SparkContext._jvm = None  # else the next Spark of this process looks for this JVM


def test_a_query_function_is_tested_with_rows_in_and_rows_out(spark: SparkSession) -> None:
    queries = {query.name: query for query in load_app(str(APPS / "shop.py")).queries}
    rows = spark.createDataFrame(
        [("p1", "a", 100.0, "DE", "e1"), ("p2", "a", 1000.0, "DE", "e2"), ("p3", "b", 1000.0, "NL", "e3")],
        "id STRING, card STRING, amount DOUBLE, country STRING, _event STRING",
    )
    decide = queries["decide"].function
    assert decide is not None
    decisions = {row["id"]: row["decision"] for row in decide(rows).collect()}
    assert decisions == {"p1": "approved", "p2": "declined", "p3": "approved"}


def test_a_query_may_use_machine_learning_where_it_is_asked_for(spark: SparkSession) -> None:
    """ml = true in [analyze]; without it Spark starts without those classes (test_faults_at_once)."""
    from pyspark.ml.feature import VectorAssembler

    rows = spark.createDataFrame([(1.0, 2.0)], "x DOUBLE, y DOUBLE")
    (row,) = VectorAssembler(inputCols=["x", "y"], outputCol="both").transform(rows).collect()
    assert list(row["both"]) == [1.0, 2.0]


def test_a_column_of_the_user_tells_where_it_was_made(spark: SparkSession) -> None:
    """Ours do not: that takes PySpark ten calls for each."""
    from pyspark.errors import ArithmeticException
    from pyspark.sql import functions as F

    from penstock.analyze.frames.call_sites import untold

    with untold():
        ours = F.lit(1) / F.col("id")
    users = F.lit(1) / F.col("id")
    with pytest.raises(ArithmeticException) as failed_ours:
        spark.range(1).select(ours).collect()
    with pytest.raises(ArithmeticException) as failed:
        spark.range(1).select(users).collect()
    assert __file__ not in str(failed_ours.value)
    assert __file__ in str(failed.value)


@pytest.mark.parametrize(
    "ddl",
    [
        "a STRING, b BOOLEAN, c BINARY, d DATE, e TINYINT, f SMALLINT, g INT, h BIGINT, i FLOAT, j DOUBLE",
        "a TIMESTAMP, b TIMESTAMP_LTZ, c TIMESTAMP_NTZ, d DECIMAL, e DECIMAL(7), f DECIMAL(12, 3), g NUMERIC(4,1)",
        "`a b` ARRAY<STRING>, c MAP<STRING, ARRAY<INT>>, d STRUCT<x: INT, y: STRUCT<`z``z`: DATE>>, e BYTE",
        "a INT NOT NULL COMMENT 'how many', b STRUCT<c: LONG NOT NULL>",
    ],
)
def test_a_schema_has_the_types_that_spark_reads_from_its_ddl(spark: SparkSession, ddl: str) -> None:
    """The words for Spark make what it would have made of the whole text, but for what may be null."""
    from pyspark.sql import functions as F

    parsed = spark.createDataFrame([], ddl).schema
    read = spark.range(0).select(F.from_json(F.lit(""), struct_words(parse_schema(ddl).columns)).alias("read"))
    assert read.schema["read"].dataType.simpleString() == parsed.simpleString()


@pytest.mark.parametrize(
    "text",
    [
        "double", "INT ", "tinyint", "byte", "short", "long", "real", "timestamp_ltz", "timestamp_ntz", "date",
        "binary", "boolean", "void", "variant", "decimal", "dec(12)", "numeric( 16 , 8 )", "varchar(7)",
        "array<array<bigint>>",
        "map<int, struct<a: string, b: float NOT NULL>>", "struct<>", "a int",
        "a: int, b: array<struct<c:int,d:string>>",
        "`two ``words` string NOT NULL COMMENT 'it\\'s', date date", "a char(3), b varchar(5) NOT NULL",
    ],
)  # fmt: skip
def test_a_type_is_read_as_spark_reads_it(text: str, spark: SparkSession) -> None:
    """PySpark asks its JVM; before there is one, our parser answers."""
    assert json.loads(type_json(text)) == json.loads(spark._jvm.PythonSQLUtils.ddlToJson(text))  # type: ignore[union-attr]
