"""Durable changes of transactions: one record each in the transaction log."""

from __future__ import annotations

from enum import Enum
from uuid import UUID

import msgspec

from penstock.errors import StorageError

PartitionKey = tuple[UUID, int]


class State(Enum):
    """As Kafka calls them."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"

    @property
    def is_ending(self) -> bool:
        """Decided, and its markers are not all written."""
        return self in (State.PREPARE_COMMIT, State.PREPARE_ABORT)

    @property
    def is_commit(self) -> bool:
        return self in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)


class Transaction(msgspec.Struct, frozen=True, tag="transaction"):
    """All there is to know of a transactional id; each record replaces the one before."""

    transactional_id: str
    producer_id: int
    epoch: int
    state: State
    timeout_ms: int
    updated_ms: int
    started_ms: int = -1
    partitions: tuple[PartitionKey, ...] = ()
    groups: tuple[str, ...] = ()
    begun_epoch: int = -1  # that of the records in it; the epoch may have grown since
    last_epoch: int = -1  # before it grew, if the client may not have heard of that
    previous_producer_id: int = -1
    next_producer_id: int = -1  # takes over once this one is ended, since its epochs are used up
    version: int = 0  # 2: with the end of the last one the epoch grew (KIP-890)


class TransactionGone(msgspec.Struct, frozen=True, tag="gone"):
    transactional_id: str


class Restarted(msgspec.Struct, frozen=True, tag="snapshot"):
    """All transactions follow in this batch: forget what was before."""


Change = Transaction | TransactionGone | Restarted

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)


def encode_change(change: Change) -> bytes:
    return _encoder.encode(change)


def decode_change(data: bytes) -> Change:
    """StorageError when the record is of no kind this version knows."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as wrong:
        raise StorageError(f"the transaction log holds a record that cannot be read: {wrong}") from None
