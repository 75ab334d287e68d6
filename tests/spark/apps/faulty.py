"""Each query is wrong in its own way."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock import App

faulty = App("faulty")
things = faulty.topic("things", schema="id STRING, raw BINARY, n INT", identity="id", key="id")
faulty.topic("keyed", schema="owner STRING NOT NULL, n INT", key="owner")


@faulty.query(reads=things, writes="a")
def raises(things: DataFrame) -> DataFrame:
    return things.select("idd")


@faulty.query(reads=things, writes="b")
def forgets(things: DataFrame) -> Any:
    things.select("id")


@faulty.query(reads=things, writes="c")
def still(things: DataFrame) -> DataFrame:
    return things.sparkSession.range(3)


@faulty.query(reads=things, writes="d")
def bytes_out(things: DataFrame) -> DataFrame:
    return things.select("id", "raw")


@faulty.query(reads=things, writes="e")
def nameless(things: DataFrame) -> DataFrame:
    return things.select("n")


@faulty.query(reads=things, writes="keyed")
def keyless(things: DataFrame) -> DataFrame:
    return things.select("n", "_event")


@faulty.query(reads=things, writes="f")
def sorts(things: DataFrame) -> DataFrame:
    return things.orderBy(F.col("n")).select("id", "_event")


faulty.sql("typo", "SELECT nn, _event FROM STREAM(things)")


@faulty.query(reads=things, writes="g")
def learns(things: DataFrame) -> DataFrame:
    from pyspark.ml.feature import VectorAssembler

    return VectorAssembler(inputCols=["n"], outputCol="features").transform(things).select("id", "_event")


faulty.topic("plain", schema="line STRING", format="text")


@faulty.query(reads=things, writes={"one": "h", "two": "i"})
def parts(things: DataFrame) -> Any:
    return {"one": things.select("id", "_event"), "too": things}


@faulty.query(reads=things, writes="plain")
def wide(things: DataFrame) -> DataFrame:
    return things.select("id", "n", "_event")


faulty.sql("nobody", "SELECT count(*) AS n FROM STREAM(things) GROUP BY id", emit="all")
faulty.sql("last", "SELECT id, count(*) AS n FROM STREAM(things) GROUP BY id", emit="final")
