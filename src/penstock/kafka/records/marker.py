"""The end of a transaction in a partition: a control batch with one record, as Kafka writes it."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from penstock.errors import PeerError
from penstock.kafka.records.batch import (
    CONTROL,
    HEADER_SIZE,
    LEADER_EPOCH,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    decode_header,
    encode_batch,
)
from penstock.kafka.records.record import decode_varint, encode_varint
from penstock.ports import Buffer

ABORT, COMMIT = 0, 1
_KEY = Struct(">hh")  # version, type
_VALUE = Struct(">hi")  # version, epoch of the coordinator
_RANGE = Struct(">qq")
# Clients skip the headers of control records. With it an index of aborted ranges is made from the segment alone.
_RANGE_NAME = b"penstock-range"


class Marker(NamedTuple):
    """`first_offset` of the transaction it ends, and up to where none was open after it; both only in an abort."""

    is_commit: bool
    coordinator_epoch: int
    first_offset: int = -1
    stable_offset: int = -1


def encode_marker(producer_id: int, epoch: int, marker: Marker, now_ms: int) -> bytearray:
    """A batch that ends the transaction of this producer, ready to be appended."""
    key = _KEY.pack(0, COMMIT if marker.is_commit else ABORT)
    value = _VALUE.pack(0, marker.coordinator_epoch)
    body = b"\0\0\0" + encode_varint(len(key)) + key + encode_varint(len(value)) + value
    if marker.is_commit or marker.first_offset < 0:
        body += encode_varint(0)
    else:
        range_ = _RANGE.pack(marker.first_offset, marker.stable_offset)
        body += encode_varint(1) + encode_varint(len(_RANGE_NAME)) + _RANGE_NAME + encode_varint(len(range_)) + range_
    attributes = TRANSACTIONAL | CONTROL
    header = BatchHeader(0, 0, LEADER_EPOCH, MAGIC, 0, attributes, 0, now_ms, now_ms, producer_id, epoch, -1, 1)
    return encode_batch(header, encode_varint(len(body)) + body)


def is_marker(header: BatchHeader) -> bool:
    """Whether it ends a transaction; a filler is a control batch, too, but of no producer."""
    return header.is_control and header.producer_id >= 0


def decode_marker(batch: Buffer) -> Marker:
    """What a whole marker batch says. PeerError if its record is malformed."""
    header = decode_header(batch)
    data = bytes(memoryview(batch)[HEADER_SIZE : header.size])
    try:
        _, at = decode_varint(data, 0)
        _, at = decode_varint(data, at + 1)
        _, at = decode_varint(data, at)
        size, at = decode_varint(data, at)
        _, kind = _KEY.unpack_from(data, at)
        _, at = decode_varint(data, at + size)
        _, coordinator_epoch = _VALUE.unpack_from(data, at)
        count, at = decode_varint(data, at + _VALUE.size)
        if count == 0:
            return Marker(kind == COMMIT, coordinator_epoch)
        size, at = decode_varint(data, at)
        _, at = decode_varint(data, at + size)
        return Marker(kind == COMMIT, coordinator_epoch, *_RANGE.unpack_from(data, at))
    except StructError:
        raise PeerError("a marker ends too early") from None
