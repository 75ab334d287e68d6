"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import boolean, int16, int32, int64, string
from penstock.kafka.wire.message import Message


@dataclass(slots=True)
class EndTxnRequest(Message):
    """From version 5 on the epoch grows with every end (KIP-890)."""

    versions = (0, 5)
    flexible = 3

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@dataclass(slots=True)
class EndTxnResponse(Message):
    """Id and epoch of the next transaction."""

    versions = (0, 5)
    flexible = 3

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1, since=5, ignorable=True)
    producer_epoch: int = int16(default=-1, since=5, ignorable=True)
