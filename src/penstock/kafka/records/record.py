"""Single records inside a batch: read where an answer needs them, written for our own logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.errors import PeerError
from penstock.kafka.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    LEADER_EPOCH,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    decode_header,
    encode_batch,
)
from penstock.kafka.records.compression import decompress
from penstock.ports import Buffer

OPENED_BYTES_MAX = 128 * 1024 * 1024
_INT64_END = 2**63


class Record(NamedTuple):
    """One record: where, when, what."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def decode_records(batch: Buffer, bytes_max: int = OPENED_BYTES_MAX) -> Iterator[Record]:
    """The records of a whole batch in order, none for a control batch; PeerError where they are malformed."""
    header = decode_header(batch)
    if header.is_control:
        return
    data = decompress(header.attributes & CODEC_MASK, memoryview(batch)[HEADER_SIZE : header.size], bytes_max)
    at = 0
    for _ in range(header.record_count):
        length, at = decode_varint(data, at)
        if length < 0 or at + length > len(data):
            raise PeerError("a record is longer than its batch")
        yield _record(data[at : at + length], header)
        at += length


def _record(data: bytes, header: BatchHeader) -> Record:
    stamp_delta, at = decode_varint(data, 1)
    offset_delta, at = decode_varint(data, at)
    key, at = _nullable(data, at)
    value, at = _nullable(data, at)
    own_time = header.attributes & LOG_APPEND_TIME
    timestamp = header.max_timestamp if own_time else header.base_timestamp + stamp_delta
    if not 0 <= offset_delta <= header.last_delta or not -_INT64_END <= timestamp < _INT64_END:
        raise PeerError("a record lies outside of its batch")
    return Record(header.base_offset + offset_delta, timestamp, key, value)


def _nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = decode_varint(data, at)
    if length < 0:
        return None, at
    if at + length > len(data):
        raise PeerError("a field is longer than its record")
    return data[at : at + length], at + length


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint at `at`, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise PeerError("a number in a record does not end")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def encode_varint(value: int) -> bytes:
    """A zigzag varint, as record fields use it."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_values(values: Sequence[bytes], now_ms: int) -> bytearray:
    """One uncompressed batch with a keyless record for each value, ready to be appended."""
    records = bytearray()
    for delta, value in enumerate(values):
        body = b"\0" + encode_varint(0) + encode_varint(delta) + encode_varint(-1)
        body += encode_varint(len(value)) + value + encode_varint(0)
        records += encode_varint(len(body)) + body
    count = len(values)
    header = BatchHeader(0, 0, LEADER_EPOCH, MAGIC, 0, 0, count - 1, now_ms, now_ms, -1, -1, -1, count)
    return encode_batch(header, records)
