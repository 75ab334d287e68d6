"""Opens a produced batch and checks the framing of its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.errors import ErrorCode, PeerError
from penstock.kafka.records.batch import CODEC_MASK, HEADER_SIZE, Refusal, decode_header
from penstock.kafka.records.compression import LZ4, OpensTooLargeError, open_records
from penstock.kafka.records.framing import end_fault, reached, walk
from penstock.ports import Buffer

PIECE_BYTES = 256 * 1024  # compiled, a walk lets no other thread run: 0.1 ms for the smallest records
_LZ4_FLAGS_AT: Final = 4
_LZ4_INDEPENDENT: Final = 0x20


def open_batch(batch: Buffer, codec: int, bytes_max: int) -> Buffer:
    """The records of a produced batch; OpensTooLargeError beyond `bytes_max`, PeerError if it cannot be opened."""
    records = memoryview(batch)[HEADER_SIZE:]
    if codec == 0:
        return records
    if codec == LZ4 and len(records) > _LZ4_FLAGS_AT and not records[_LZ4_FLAGS_AT] & _LZ4_INDEPENDENT:
        raise PeerError("lz4 blocks refer to earlier ones, which Kafka's Java clients cannot read")
    return open_records(codec, records, bytes_max)


def large_refusal(batch: Buffer, bytes_max: int, pause: Callable[[], None]) -> Refusal | None:
    """Why the records of a produced batch of any size must not be stored, or None, found in any thread.

    It calls `pause` often, to let other threads run.
    """
    header = decode_header(batch)
    try:
        data = open_batch(batch, header.attributes & CODEC_MASK, bytes_max)
    except OpensTooLargeError as too_large:
        return Refusal(ErrorCode.MESSAGE_TOO_LARGE, f"{too_large} (opened_bytes_max)")
    except MemoryError:
        return Refusal(ErrorCode.MESSAGE_TOO_LARGE, "there is not enough memory to open the records")
    except PeerError as wrong:
        return Refusal(ErrorCode.INVALID_RECORD, str(wrong))
    fault = _fault_in_pieces(data, header.record_count, pause)
    return Refusal(ErrorCode.INVALID_RECORD, fault) if fault is not None else None


def _fault_in_pieces(data: Buffer, count: int, pause: Callable[[], None]) -> str | None:
    """What framing_fault says, found piece by piece."""
    records = memoryview(data)
    at = number = 0
    size = PIECE_BYTES
    while True:
        piece = bytes(records[at : at + size])
        end = walk(piece, 0, number, count)
        is_last = at + size >= len(records)
        if is_last or end >= 0:
            return end_fault(at + end if end >= 0 else end, len(records), count)
        whole = reached(end)
        if whole is None:
            return end_fault(end, len(records), count)
        if whole == number:
            size *= 2  # a record larger than the piece
        else:
            at += walk(piece, 0, number, whole)
            number, size = whole, PIECE_BYTES
        pause()
