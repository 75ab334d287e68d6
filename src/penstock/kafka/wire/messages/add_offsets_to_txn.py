"""AddOffsetsToTxn: the group whose positions a transaction will commit."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import int16, int32, int64, string
from penstock.kafka.wire.message import Message


@dataclass(slots=True)
class AddOffsetsToTxnRequest(Message):
    """A transaction and a group."""

    versions = (0, 4)
    flexible = 3

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@dataclass(slots=True)
class AddOffsetsToTxnResponse(Message):
    """Whether it was added."""

    versions = (0, 4)
    flexible = 3

    throttle_time_ms: int = int32()
    error_code: int = int16()
