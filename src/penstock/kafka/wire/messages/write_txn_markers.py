"""WriteTxnMarkers: end transactions in single partitions; an operator's way out when one hangs."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, int8, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class WritableTxnMarkerTopic(Struct):
    name: str = string()
    partition_indexes: list[int] = array(int32)


@dataclass(slots=True)
class WritableTxnMarker(Struct):
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(since=2, ignorable=True)


@dataclass(slots=True)
class WriteTxnMarkersRequest(Message):
    """Markers by producer."""

    versions = (1, 2)
    flexible = 1

    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


@dataclass(slots=True)
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()


@dataclass(slots=True)
class WritableTxnMarkerTopicResult(Struct):
    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


@dataclass(slots=True)
class WritableTxnMarkerResult(Struct):
    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


@dataclass(slots=True)
class WriteTxnMarkersResponse(Message):
    """What became of each."""

    versions = (1, 2)
    flexible = 1

    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
