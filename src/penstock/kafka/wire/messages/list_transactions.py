"""ListTransactions: the transactional ids this broker knows."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ListTransactionsRequest(Message):
    """Which of them; an empty filter lets all pass."""

    versions = (0, 2)
    flexible = 0

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64(default=-1, since=1)
    transactional_id_pattern: str | None = string.or_null(since=2)


@dataclass(slots=True)
class ListedTransaction(Struct):
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@dataclass(slots=True)
class ListTransactionsResponse(Message):
    """Those that passed."""

    versions = (0, 2)
    flexible = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[ListedTransaction] = array(ListedTransaction)
