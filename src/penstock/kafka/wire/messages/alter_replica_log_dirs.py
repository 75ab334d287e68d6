"""AlterReplicaLogDirs: into which folder a partition belongs."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class AlterReplicaLogDirTopic(Struct):
    name: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class AlterReplicaLogDir(Struct):
    path: str = string()
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


@dataclass(slots=True)
class AlterReplicaLogDirsRequest(Message):
    """Folders, and the partitions to move there."""

    versions = (1, 2)
    flexible = 2

    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


@dataclass(slots=True)
class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True)
class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


@dataclass(slots=True)
class AlterReplicaLogDirsResponse(Message):
    """Whether each may move."""

    versions = (1, 2)
    flexible = 2

    throttle_time_ms: int = int32()
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
