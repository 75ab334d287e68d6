"""Queries whose functions keep state in Python."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.state import GroupStateTimeout

from penstock import App

visiting = App("visiting")
visits = visiting.topic("visits", schema="who STRING NOT NULL, at TIMESTAMP", event_time="at")

COLUMNS = "who STRING, visits BIGINT, is_over BOOLEAN"
IDLE_MS = 30 * 60_000


class Visits(StatefulProcessor):
    """Counts the visits of each visitor until there is none for half an hour."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._count = handle.getValueState("count", "n BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        frames = list(rows)
        count = (self._count.get()[0] if self._count.exists() else 0) + sum(map(len, frames))
        self._count.update((count,))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(int(max(frame["at"].max() for frame in frames).timestamp() * 1000) + IDLE_MS)
        yield pd.DataFrame({"who": [key[0]], "visits": [count], "is_over": [False]})

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        (count,) = self._count.get()
        self._count.clear()
        yield pd.DataFrame({"who": [key[0]], "visits": [count], "is_over": [True]})

    def close(self) -> None:
        """There is nothing to close."""


@visiting.query(reads=visits, writes="counted", watermark="10 minutes")
def counted(visits: DataFrame) -> DataFrame:
    return visits.groupBy("who").transformWithStateInPandas(Visits(), COLUMNS, "update", "eventTime")


@visiting.query(reads=visits, writes="summed")
def summed(visits: DataFrame) -> DataFrame:
    def count(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        total = (state.get[0] if state.exists else 0) + sum(map(len, frames))
        state.update((total,))
        yield pd.DataFrame({"who": [key[0]], "visits": [total], "is_over": [False]})

    return visits.groupBy("who").applyInPandasWithState(
        count, COLUMNS, "n BIGINT", "update", GroupStateTimeout.NoTimeout
    )
