"""DescribeTransactions: how far transactions have come."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribeTransactionsRequest(Message):
    """Transactional ids."""

    versions = (0, 0)
    flexible = 0

    transactional_ids: list[str] = array(string)


@dataclass(slots=True)
class TransactionTopic(Struct):
    topic: str = string()
    partitions: list[int] = array(int32)


@dataclass(slots=True)
class DescribedTransaction(Struct):
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TransactionTopic] = array(TransactionTopic)


@dataclass(slots=True)
class DescribeTransactionsResponse(Message):
    """What is known of each."""

    versions = (0, 0)
    flexible = 0

    throttle_time_ms: int = int32()
    transaction_states: list[DescribedTransaction] = array(DescribedTransaction)
