"""Record batches made by hand: honest ones, and ones that lie in a single field."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from crc32c import crc32c

from penstock.kafka.records.batch import CRC_FROM, MAGIC, BatchHeader, encode_batch
from penstock.kafka.records.record import encode_varint

CRC_AT = 17
NOW_MS = int(time.time() * 1000)


class Line(NamedTuple):
    """One record to put into a batch."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = NOW_MS
    headers: tuple[tuple[str, bytes | None], ...] = ()


def lines(*values: str) -> list[Line]:
    return [Line(value.encode()) for value in values]


def batch_of(
    records: Sequence[Line],
    *,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    attributes: int = 0,
    body: bytes | None = None,
) -> bytearray:
    """An honest batch, as a producer sends it; `body` takes the place of the plain records (compressed)."""
    first = records[0].timestamp
    header = BatchHeader(
        base_offset=0,
        length=0,
        leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_delta=len(records) - 1,
        base_timestamp=first,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        record_count=len(records),
    )
    return encode_batch(header, plain_body(records) if body is None else body)


def plain_body(records: Sequence[Line]) -> bytes:
    """The records of a batch before compression."""
    out = bytearray()
    for delta, record in enumerate(records):
        inner = bytearray(b"\0")
        inner += encode_varint(record.timestamp - records[0].timestamp) + encode_varint(delta)
        inner += _sized(record.key) + _sized(record.value)
        inner += encode_varint(len(record.headers))
        for name, value in record.headers:
            inner += _sized(name.encode()) + _sized(value)
        out += encode_varint(len(inner)) + inner
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def patched(batch: bytearray, at: int, new: bytes, *, seal: bool = True) -> bytearray:
    """The batch with other bytes at `at`, and a checksum that fits them unless `seal` is false."""
    changed = bytearray(batch)
    changed[at : at + len(new)] = new
    if seal:
        changed[CRC_AT : CRC_AT + 4] = crc32c(changed[CRC_FROM:]).to_bytes(4, "big")
    return changed
