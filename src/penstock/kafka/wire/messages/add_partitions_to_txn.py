"""AddPartitionsToTxn: which partitions a transaction will write to."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class AddPartitionsToTxnTopic(Struct):
    name: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = string(since=4)
    producer_id: int = int64(since=4)
    producer_epoch: int = int16(since=4)
    verify_only: bool = boolean(since=4)
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, since=4)


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Message):
    """One transaction, or from version 4 on many; these may only ask whether a partition is in."""

    versions = (0, 5)
    flexible = 3

    transactions: list[AddPartitionsToTxnTransaction] = array(AddPartitionsToTxnTransaction, since=4)
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)


@dataclass(slots=True)
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = int32()
    partition_error_code: int = int16()


@dataclass(slots=True)
class AddPartitionsToTxnTopicResult(Struct):
    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(AddPartitionsToTxnPartitionResult)


@dataclass(slots=True)
class AddPartitionsToTxnResult(Struct):
    transactional_id: str = string(since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, since=4)


@dataclass(slots=True)
class AddPartitionsToTxnResponse(Message):
    """What became of each partition."""

    versions = (0, 5)
    flexible = 3

    throttle_time_ms: int = int32()
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(AddPartitionsToTxnResult, since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult, until=3)
