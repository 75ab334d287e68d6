"""InitProducerId: give an idempotent producer its id."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import boolean, int16, int32, int64, string
from penstock.kafka.wire.message import Message


@dataclass(slots=True)
class InitProducerIdRequest(Message):
    """A producer that wants an id, or a newer epoch of the one it has."""

    versions = (0, 6)
    flexible = 2

    transactional_id: str | None = string.or_null(default="")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(default=-1, since=3)
    producer_epoch: int = int16(default=-1, since=3)
    enable2_pc: bool = boolean(since=6)
    keep_prepared_txn: bool = boolean(since=6)


@dataclass(slots=True)
class InitProducerIdResponse(Message):
    """The id and epoch to put into batches."""

    versions = (0, 6)
    flexible = 2

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(default=-1, since=6)
    ongoing_txn_producer_epoch: int = int16(default=-1, since=6)
