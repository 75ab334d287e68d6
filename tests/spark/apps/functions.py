"""Every kind of Python function that a streaming query may have, with a module and a package beside the app."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import rates
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock import App, Guarantee

functions = App("functions")
once = Guarantee(delivery="exactly-once", outage="costly")
numbers = functions.topic("numbers", schema="id STRING NOT NULL, card STRING, n INT", key="card", partitions=2)
for topic in ("scored", "rated", "mapped", "sums", "counts"):
    functions.topic(topic, guarantee=once, partitions=2)

TICK_MS = 500


@dataclass
class Score:
    """A class of the app's own file."""

    n: int

    @property
    def value(self) -> float:
        from scoring.weights import weight  # as some do, to start sooner

        return self.n * weight(self.n)


@udf("struct<value: double, parity: string>")
def score(n: int) -> tuple[float, str]:
    return Score(n).value, rates.parity(n)


@pandas_udf("double")
def rate(n: pd.Series) -> pd.Series:
    return n * rates.RATE


@functions.query(reads=numbers, writes="scored")
def scored(numbers: DataFrame) -> DataFrame:
    found = numbers.select("id", score("n").alias("score"))
    return found.select("id", "score.value", "score.parity")


@functions.query(reads=numbers, writes="rated")
def rated(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", rate("n").alias("rate"), rates.declared_beside("n").alias("beside"))


def in_batches(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for batch in batches:
        yield pd.DataFrame({"id": batch["id"], "twice": batch["n"] * 2})


@functions.query(reads=numbers, writes="mapped")
def mapped(numbers: DataFrame) -> DataFrame:
    return numbers.select("id", "n").mapInPandas(in_batches, "id string, twice int")


def add(key: tuple[str], batches: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    (total, events) = state.get if state.exists else (0, 0)
    for batch in batches:
        total, events = total + int(batch["n"].sum()), events + len(batch)
    state.update((total, events))
    yield pd.DataFrame({"card": [key[0]], "total": [total], "events": [events]})


@functions.query(reads=numbers, writes="sums")
def sums(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("card").applyInPandasWithState(
        add, "card string, total long, events long", "total long, events long", "update", GroupStateTimeout.NoTimeout
    )


class Counting(StatefulProcessor):
    """Counts the events of a card, and says the number at each tick of its timer."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        if not self._count.exists():
            self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + TICK_MS)
        before = self._count.get()[0] if self._count.exists() else 0
        self._count.update((before + sum(1 for _ in rows),))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        self._handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + TICK_MS)
        yield Row(card=key[0], events=self._count.get()[0])


@functions.query(reads=numbers, writes="counts")
def counts(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy("card").transformWithState(
        Counting(), "card string, events long", "update", "processingTime"
    )
