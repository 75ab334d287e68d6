"""ElectLeaders: whose turn it is to lead a partition."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, array_or_null, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ElectLeadersTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class ElectLeadersRequest(Message):
    """Partitions to elect leaders for; null means all."""

    versions = (0, 2)
    flexible = 2

    election_type: int = int8(since=1)
    topic_partitions: list[ElectLeadersTopic] | None = array_or_null(ElectLeadersTopic)
    timeout_ms: int = int32(default=60_000)


@dataclass(slots=True)
class ElectLeadersPartitionResult(Struct):
    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")


@dataclass(slots=True)
class ReplicaElectionResult(Struct):
    topic: str = string()
    partition_result: list[ElectLeadersPartitionResult] = array(ElectLeadersPartitionResult)


@dataclass(slots=True)
class ElectLeadersResponse(Message):
    """What came of each election."""

    versions = (0, 2)
    flexible = 2

    throttle_time_ms: int = int32()
    error_code: int = int16(since=1)
    replica_election_results: list[ReplicaElectionResult] = array(ReplicaElectionResult)
