"""Reads the state of a query from its checkpoint, also while the query runs: Spark's `statestore` reader."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.spark_text import spark_words
from penstock.analyze.standalone_session import standalone_session
from penstock.config.analyze import AnalyzeConfig
from penstock.errors import ConfigError, PenstockError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_JOIN = "symmetricHashJoin"
State = dict[str, Any]


def read_state(checkpoint: Checkpoint, config: AnalyzeConfig, key: Mapping[str, str], limit: int) -> list[State]:
    """Rows of the state of the last committed batch, `limit` at most; `key` has columns of the key, as text.

    ConfigError if the query keeps no state, or if its key has no such column.
    """
    from pyspark.errors import PySparkException

    if not (checkpoint.path / "state").is_dir():
        raise ConfigError(f"{checkpoint.path.name} keeps no state: it has no aggregate, join, or duplicates to drop")
    found: list[State] = []
    with tempfile.TemporaryDirectory() as folder, standalone_session("state", config, Path(folder), slots=1) as spark:
        try:
            for labels, frame in _stores(spark, str(checkpoint.path)):
                if len(found) < limit:
                    found += _rows(labels, frame, key, limit - len(found))
        except PySparkException as error:
            raise PenstockError(f"the state cannot be read: {spark_words(error)}") from None
    return found


def _stores(spark: SparkSession, path: str) -> Iterator[tuple[State, DataFrame]]:
    """Each store of each stateful operator, and what names it."""
    for operator in spark.read.format("state-metadata").load(path).orderBy("operatorId", "stateStoreName").collect():
        labels = {"operator": operator.operatorId, "kind": operator.operatorName}
        reader = spark.read.format("statestore").option("operatorId", operator.operatorId)
        if operator.operatorName == _JOIN:
            if operator.stateStoreName.startswith("left-keyToNumValues"):  # once for all stores of the join
                for side in ("left", "right"):
                    yield labels | {"side": side}, reader.option("joinSide", side).load(path)
            continue
        variables = json.loads(operator.operatorProperties or "{}").get("stateVariables")
        if not variables:
            yield labels, reader.option("storeName", operator.stateStoreName).load(path)
        for variable in variables or ():
            name = variable["stateName"]
            if not name.startswith("$"):  # timers and the like are Spark's own
                yield labels | {"variable": name}, reader.option("stateVarName", name).load(path)


def _rows(labels: State, frame: DataFrame, key: Mapping[str, str], limit: int) -> list[State]:
    from pyspark.sql import functions as F

    if key:
        there = frame.schema["key"].dataType.fieldNames()  # type: ignore[attr-defined]
        if missing := [name for name in key if name not in there]:
            raise ConfigError(f"the key of the state has no column {missing[0]}: its columns are {', '.join(there)}")
        wanted = [F.col("key")[name].cast("string") == text for name, text in key.items()]
        frame = frame.where(reduce(lambda left, right: left & right, wanted))
    texts = frame.drop("partition_id").select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
    return [labels | json.loads(row["row"]) for row in texts.limit(limit).collect()]
