"""DescribeLogDirs: how much room each partition takes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, array_or_null, boolean, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribableLogDirTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class DescribeLogDirsRequest(Message):
    """Partitions to tell about; null asks for all."""

    versions = (1, 5)
    flexible = 2

    topics: list[DescribableLogDirTopic] | None = array_or_null(DescribableLogDirTopic)


@dataclass(slots=True)
class DescribeLogDirsPartition(Struct):
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@dataclass(slots=True)
class DescribeLogDirsTopic(Struct):
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(DescribeLogDirsPartition)


@dataclass(slots=True)
class DescribeLogDirsResult(Struct):
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(DescribeLogDirsTopic)
    total_bytes: int = int64(default=-1, since=4, ignorable=True)
    usable_bytes: int = int64(default=-1, since=4, ignorable=True)
    is_cordoned: bool = boolean(since=5, ignorable=True)


@dataclass(slots=True)
class DescribeLogDirsResponse(Message):
    """The data folder, and each partition in it."""

    versions = (1, 5)
    flexible = 2

    throttle_time_ms: int = int32()
    error_code: int = int16(since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = array(DescribeLogDirsResult)
