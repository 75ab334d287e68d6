"""Queries whose Python functions fail, each in its own way."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from raising_beside import third

from penstock import App, Guarantee

raising = App("raising")
numbers = raising.topic("numbers", schema="id STRING NOT NULL, n INT", key="id", identity="id")
raising.topic("whole", schema="id STRING", key="id", guarantee=Guarantee(delivery="exactly-once"))
raising.topic("mapped", guarantee=Guarantee(delivery="exactly-once"))


@raising.query(reads=numbers, writes="shares")
def divides(numbers: DataFrame) -> DataFrame:
    def share(n: int) -> float:
        return 1 / n

    return numbers.select("id", F.udf(share, "double")("n").alias("share"), "_event")


@raising.query(reads=numbers, writes="whole")
def divides_once(numbers: DataFrame) -> DataFrame:
    def share(n: int) -> float:
        return 2 / n

    return numbers.select("id", F.udf(share, "double")("n").alias("share"), "_event")


@raising.query(reads=numbers, writes="imported")
def imports(numbers: DataFrame) -> DataFrame:
    def score(n: int) -> int:
        from importlib import import_module  # by a name that nothing shows before the first event

        return int(import_module("no_such_module").score(n))

    return numbers.select("id", F.udf(score, "int")("n").alias("score"), "_event")


@raising.query(reads=numbers, writes="died")
def dies(numbers: DataFrame) -> DataFrame:
    def call(n: int) -> int:
        import os
        import sys

        sys.stderr.write("the native library ran out of luck\n")
        sys.stderr.flush()
        os._exit(3)

    return numbers.select("id", F.udf(call, "int")("n").alias("n"), "_event")


@F.pandas_udf("double")
def quarter(n: pd.Series) -> pd.Series:
    return n.map(lambda each: 4 / each)


@raising.query(reads=numbers, writes="quarters")
def divides_in_pandas(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", quarter("n").alias("quarter"), "_event")


@raising.query(reads=numbers, writes="thirds")
def divides_beside(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", F.udf(third, "double")("n").alias("third"), "_event")


def batches(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.assign(n=5 // frame["n"].tolist()[0])


@raising.query(reads=numbers, writes="mapped")
def divides_in_batches(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", "n").mapInPandas(batches, "id string, n int")


def add(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield pd.DataFrame({"id": [key[0]], "n": [6 // frame["n"].tolist()[0]]})


@raising.query(reads=numbers, writes="grouped")
def divides_with_state(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("id").applyInPandasWithState(
        add, "id string, n int", "n int", "update", GroupStateTimeout.NoTimeout
    )


class Processor(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._seen = handle.getValueState("seen", "n int")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            yield Row(id=key[0], n=7 // row.n)


@raising.query(reads=numbers, writes="processed")
def divides_in_a_processor(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("id").transformWithState(Processor(), "id string, n int", "update", "none")
