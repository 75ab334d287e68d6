"""Fetch, by hand: requests as tuples, responses as chunks in which records are never copied."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from penstock.errors import PeerError
from penstock.kafka.wire.raw import (
    compact_count,
    compact_string,
    count_of,
    encode_uvarint,
    need,
    plain_string,
    skip_tags,
)
from penstock.ports import Buffer

FLEXIBLE = 12
BY_TOPIC_ID = 13
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_LIMITS = Struct(">iiib")
_LIMITS_AND_SESSION = Struct(">iiibii")
_READ_COMMITTED = 1


class FetchPartition(NamedTuple):
    """One partition to read."""

    partition: int
    leader_epoch: int
    offset: int
    bytes_max: int


class FetchCall(NamedTuple):
    """What to read: by raw topic name (or id, from version 13), then by partition."""

    max_wait_ms: int
    min_bytes: int
    bytes_max: int
    is_committed: bool
    session_id: int
    session_epoch: int
    topics: list[tuple[bytes, list[FetchPartition]]]


def decode_fetch(frame: memoryview, at: int, version: int) -> FetchCall:
    """The body that starts at `at`; PeerError unless it fills the frame exactly."""
    try:
        call, at = _decode(frame, at, version)
    except (StructError, IndexError):
        raise PeerError("a fetch request ends too early") from None
    if at != len(frame):
        raise PeerError(f"{len(frame) - at} bytes follow a fetch request")
    return call


def _decode(frame: memoryview, at: int, version: int) -> tuple[FetchCall, int]:
    if version <= 14:
        at += 4  # replica id: only other brokers have one
    if version >= 7:
        wait, least, most, isolation, session, epoch = _LIMITS_AND_SESSION.unpack_from(frame, at)
        at += 21
    else:
        wait, least, most, isolation = _LIMITS.unpack_from(frame, at)
        session, epoch = 0, -1
        at += 13
    flexible = version >= FLEXIBLE
    count, at = compact_count(frame, at, 3) if flexible else count_of(frame, at, 6)
    topics = []
    for _ in range(count):
        name, at = _topic(frame, at, version)
        partitions, at = _partitions(frame, at, version)
        topics.append((name, partitions))
        if flexible:
            at = skip_tags(frame, at)
    if version >= 7:
        at = _skip_forgotten(frame, at, version)
    if version >= 11:
        _, at = compact_string(frame, at) if flexible else plain_string(frame, at)
    if flexible:
        at = skip_tags(frame, at)
    return FetchCall(wait, least, most, isolation == _READ_COMMITTED, session, epoch, topics), at


def _topic(frame: memoryview, at: int, version: int) -> tuple[bytes, int]:
    if version >= BY_TOPIC_ID:
        need(frame, at, 16)
        return bytes(frame[at : at + 16]), at + 16
    name, at = compact_string(frame, at) if version >= FLEXIBLE else plain_string(frame, at)
    if name is None:
        raise PeerError("a topic to fetch has no name")
    return name, at


_PARTITION_4 = Struct(">iqi")
_PARTITION_5 = Struct(">iqqi")
_PARTITION_9 = Struct(">iiqqi")
_PARTITION_12 = Struct(">iiqiqi")


def _partitions(frame: memoryview, at: int, version: int) -> tuple[list[FetchPartition], int]:
    found = []
    if version >= FLEXIBLE:
        count, at = compact_count(frame, at, _PARTITION_12.size + 1)
        for _ in range(count):
            index, epoch, offset, _, _, most = _PARTITION_12.unpack_from(frame, at)
            at = skip_tags(frame, at + _PARTITION_12.size)
            found.append(FetchPartition(index, epoch, offset, most))
        return found, at
    shape = _PARTITION_9 if version >= 9 else _PARTITION_5 if version >= 5 else _PARTITION_4
    count, at = count_of(frame, at, shape.size)
    for _ in range(count):
        values = shape.unpack_from(frame, at)
        epoch, offset = values[1:3] if version >= 9 else (-1, values[1])
        found.append(FetchPartition(values[0], epoch, offset, values[-1]))
        at += shape.size
    return found, at


def _skip_forgotten(frame: memoryview, at: int, version: int) -> int:
    flexible = version >= FLEXIBLE
    count, at = compact_count(frame, at, 3) if flexible else count_of(frame, at, 6)
    for _ in range(count):
        _, at = _topic(frame, at, version)
        inner, at = compact_count(frame, at, 4) if flexible else count_of(frame, at, 4)
        need(frame, at, 4 * max(inner, 0))
        at += 4 * max(inner, 0)
        if flexible:
            at = skip_tags(frame, at)
    return at


class FetchedPartition(NamedTuple):
    """What was read of one partition; `aborted` (producer id, first offset) for who asked for what is committed."""

    partition: int
    error_code: int
    high_watermark: int
    stable_offset: int
    start_offset: int
    aborted: list[tuple[int, int]] | None
    records: Buffer


_HEAD = Struct(">ihqq")
_START = Struct(">q")
_NO_REPLICA = b"\xff\xff\xff\xff"
_ABORTED = Struct(">qq")
_ABORTED_COMPACT = Struct(">qqb")  # no tagged fields


def encode_fetch_response(
    version: int, correlation_id: int, error_code: int, topics: list[tuple[bytes, list[FetchedPartition]]]
) -> list[Buffer]:
    """A whole response frame in chunks, its length included."""
    flexible = version >= FLEXIBLE
    head = bytearray(_INT32.pack(correlation_id) + (b"\0" if flexible else b"") + b"\0\0\0\0")
    if version >= 7:
        head += _INT16.pack(error_code) + b"\0\0\0\0"  # session 0: every fetch names all it wants
    chunks: list[Buffer] = [b""]
    head += encode_uvarint(len(topics) + 1) if flexible else _INT32.pack(len(topics))
    for name, partitions in topics:
        if version < BY_TOPIC_ID:
            head += encode_uvarint(len(name) + 1) if flexible else _INT16.pack(len(name))
        head += name
        head += encode_uvarint(len(partitions) + 1) if flexible else _INT32.pack(len(partitions))
        for partition in partitions:
            _encode_partition_head(head, partition, version)
            if len(partition.records):
                chunks += (head, partition.records)
                head = bytearray()
            if flexible:
                head += b"\0"
        if flexible:
            head += b"\0"
    if flexible:
        head += b"\0"
    chunks.append(head)
    chunks[0] = _INT32.pack(sum(map(len, chunks)))
    return chunks


def _encode_partition_head(head: bytearray, partition: FetchedPartition, version: int) -> None:
    number, error_code, high_watermark, stable_offset, start_offset, aborted, records = partition
    head += _HEAD.pack(number, error_code, high_watermark, stable_offset)
    if version >= 5:
        head += _START.pack(start_offset)
    if version >= FLEXIBLE:
        head += b"\0" if aborted is None else encode_uvarint(len(aborted) + 1)
        for producer_id, first_offset in aborted or ():
            head += _ABORTED_COMPACT.pack(producer_id, first_offset, 0)
        head += _NO_REPLICA + encode_uvarint(len(records) + 1)
    else:
        head += _INT32.pack(-1 if aborted is None else len(aborted))
        for producer_id, first_offset in aborted or ():
            head += _ABORTED.pack(producer_id, first_offset)
        if version >= 11:
            head += _NO_REPLICA
        head += _INT32.pack(len(records))
