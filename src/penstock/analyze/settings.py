"""Every setting of Spark that Penstock gives, and where each came from: ours, the operator's, or the query's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.config.analyze import AnalyzeConfig
from penstock.plan.checks import COMMIT_MS_MIN
from penstock.plan.plan import Plan, QueryPlan
from penstock.plan.policies import StateStore

OURS, FILE, QUERY = "penstock", "[analyze.spark]", "query"

_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
_STATE = "org.apache.spark.sql.execution.streaming.state"


@dataclass(frozen=True, slots=True)
class SparkSetting:
    """One setting and its origin."""

    value: str
    origin: str


def session_settings(config: AnalyzeConfig, app: str, data: Path, slots: int) -> dict[str, SparkSetting]:
    """Settings of the whole session; the operator's win over ours."""
    ours = {
        "spark.master": f"local[{slots}]" if config.master == "local" else config.master,
        "spark.app.name": app,
        "spark.ui.enabled": str(config.ui).lower(),
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(data / "tmp"),
        "spark.sql.warehouse.dir": str(data / "tmp" / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (data / "events").as_uri(),
        "spark.eventLog.compression.codec": "lz4",  # its library is loaded anyway; that of the default only for this
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "10m",
        # The default holds a row back for 50 ms: a count by key took 39 ms instead of 3.
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",  # real time asks for it
        # On a busy machine a state commit took 1,200 ms with Spark's default and 90 with this one (local files only).
        "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
        # Hadoop's own starts a `chmod` process for every file it writes, two to four of them at each commit.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",  # a second file for every file
        # A kill during the first commit leaves files behind.
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.pollingDelay": "50ms",  # how often an idle micro-batch query asks for new events
        # The line at which a Python worker died is in the error.
        "spark.python.worker.faulthandler.enabled": "true",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
        "spark.cleaner.referenceTracking.cleanCheckpoints": "false",
    }
    return _layered(ours, config.spark)


def query_settings(query: QueryPlan, config: AnalyzeConfig) -> dict[str, SparkSetting]:
    """Settings of one query's own session; the query's win over all."""
    if query.state is StateStore.MEMORY:
        ours = {
            "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.HDFSBackedStateStoreProvider",
            "spark.sql.streaming.stateStore.checkpointFormatVersion": "1",
        }
    else:
        ours = {
            "spark.sql.streaming.stateStore.providerClass": f"{_STATE}.RocksDBStateStoreProvider",
            "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        }
    settings = _layered(ours, {name: value for name, value in config.spark.items() if name in ours})
    return settings | {name: SparkSetting(value, f"{QUERY} {query.name}") for name, value in query.spark.items()}


def slots_needed(plan: Plan, config: AnalyzeConfig, cores: int, partitions: Mapping[str, int]) -> int:
    """Task slots for all queries at once: a real-time query holds one for every partition and shuffle, all the time."""
    held = sum(
        sum(partitions.get(topic, plan.topics[topic].partitions) for topic in query.reads)
        + 2 * int(query.spark.get("spark.sql.shuffle.partitions", config.shuffle_partitions))
        for query in plan.queries.values()
    )
    return held + cores + 1


def origins_of(
    session: Mapping[str, SparkSetting], plan: Plan, config: AnalyzeConfig
) -> dict[str, dict[str, dict[str, str]]]:
    """Every setting with its value and its origin, of the session and of each query, as people are shown it."""
    tables = {"session": session} | {name: query_settings(query, config) for name, query in plan.queries.items()}
    return {
        table: {name: {"value": setting.value, "origin": setting.origin} for name, setting in settings.items()}
        for table, settings in tables.items()
    }


def commit_ms(query: QueryPlan) -> int:
    """How often a real-time query commits: what it asks for, else what its guarantee asks for."""
    return max(COMMIT_MS_MIN, query.every_ms or query.commit_every_ms)


def _layered(ours: Mapping[str, str], operators: Mapping[str, str]) -> dict[str, SparkSetting]:
    settings = {name: SparkSetting(value, OURS) for name, value in ours.items()}
    return settings | {name: SparkSetting(value, FILE) for name, value in operators.items()}
