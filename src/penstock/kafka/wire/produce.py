"""Produce, by hand: the hottest request. Equal to the table's codec, byte for byte."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from penstock.errors import PeerError
from penstock.kafka.wire.raw import (
    compact_count,
    compact_string,
    count_of,
    encode_uvarint,
    need,
    plain_string,
    read_uvarint,
    skip_tags,
)

FLEXIBLE: Final = 9
BY_TOPIC_ID: Final = 13
_PREFIX = Struct(">hi")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_SMALLEST_TOPIC = 2
_SMALLEST_PARTITION = 6

Batches = list[tuple[int, memoryview | None]]


class ProduceCall(NamedTuple):
    """Batches to append: by raw topic name (or id, from version 13), then by partition."""

    transactional_id: bytes | None
    acks: int
    topics: list[tuple[bytes, Batches]]


class PartitionAck:
    """What became of one batch; filled in when it is known."""

    __slots__ = ("append_time_ms", "base_offset", "error_code", "error_message", "index", "start_offset")

    def __init__(self, index: int) -> None:
        self.index = index
        self.error_code = 0
        self.base_offset = -1
        self.append_time_ms = -1
        self.start_offset = -1
        self.error_message: str | None = None

    def refuse(self, code: int, why: str) -> None:
        """The batch was not stored."""
        self.error_code = code
        self.error_message = why
        self.base_offset = self.append_time_ms = self.start_offset = -1


def decode_produce(frame: memoryview, at: int, version: int) -> ProduceCall:
    """The body that starts at `at`; PeerError unless it fills the frame exactly."""
    try:
        call, at = _decode_compact(frame, at, version) if version >= FLEXIBLE else _decode_plain(frame, at)
    except (StructError, IndexError):
        raise PeerError("a produce request ends too early") from None
    if at != len(frame):
        raise PeerError(f"{len(frame) - at} bytes follow a produce request")
    return call


def _decode_plain(frame: memoryview, at: int) -> tuple[ProduceCall, int]:
    transactional_id, at = plain_string(frame, at)
    acks, _ = _PREFIX.unpack_from(frame, at)
    count, at = count_of(frame, at + 6, _SMALLEST_TOPIC + 4)
    topics = []
    for _ in range(count):
        name, at = plain_string(frame, at)
        if name is None:
            raise PeerError("a produced topic has no name")
        inner, at = count_of(frame, at, _SMALLEST_PARTITION + 2)
        batches: Batches = []
        for _ in range(inner):
            index, size = _two_int32(frame, at)
            at += 8
            if size < 0:
                batches.append((index, None))
                continue
            need(frame, at, size)
            batches.append((index, frame[at : at + size]))
            at += size
        topics.append((name, batches))
    return ProduceCall(transactional_id, acks, topics), at


_two_int32 = Struct(">ii").unpack_from


def _decode_compact(frame: memoryview, at: int, version: int) -> tuple[ProduceCall, int]:
    transactional_id, at = compact_string(frame, at)
    acks, _ = _PREFIX.unpack_from(frame, at)
    count, at = compact_count(frame, at + 6, _SMALLEST_TOPIC)
    topics = []
    for _ in range(count):
        if version >= BY_TOPIC_ID:
            need(frame, at, 16)
            name: bytes | None = bytes(frame[at : at + 16])
            at += 16
        else:
            name, at = compact_string(frame, at)
        if name is None:
            raise PeerError("a produced topic has no name")
        inner, at = compact_count(frame, at, _SMALLEST_PARTITION)
        batches: Batches = []
        for _ in range(inner):
            (index,) = _INT32.unpack_from(frame, at)
            size, at = read_uvarint(frame, at + 4)
            size -= 1
            if size < 0:
                batches.append((index, None))
            else:
                need(frame, at, size)
                batches.append((index, frame[at : at + size]))
                at += size
            at = skip_tags(frame, at)
        at = skip_tags(frame, at)
        topics.append((name, batches))
    return ProduceCall(transactional_id, acks, topics), skip_tags(frame, at)


_ACK = Struct(">ihqq")
_ACK_WITH_START = Struct(">ihqqq")
_NULL_MESSAGE = b"\xff\xff"


def encode_produce_response(version: int, correlation_id: int, topics: list[tuple[bytes, list[PartitionAck]]]) -> bytes:
    """A whole response frame, its length included."""
    out = [b"", _INT32.pack(correlation_id)]
    if version >= FLEXIBLE:
        out.append(b"\0")
        out.append(encode_uvarint(len(topics) + 1))
        for name, acks in topics:
            if version < BY_TOPIC_ID:
                out.append(encode_uvarint(len(name) + 1))
            out.append(name)
            out.append(encode_uvarint(len(acks) + 1))
            out.extend(_encode_ack_compact(ack) for ack in acks)
            out.append(b"\0")
        out.append(b"\0\0\0\0\0")
    else:
        out.append(_INT32.pack(len(topics)))
        for name, acks in topics:
            out.append(_INT16.pack(len(name)) + name + _INT32.pack(len(acks)))
            out.extend(_encode_ack_plain(ack, version) for ack in acks)
        out.append(b"\0\0\0\0")
    body = b"".join(out)
    return _INT32.pack(len(body)) + body


def _encode_ack_compact(ack: PartitionAck) -> bytes:
    head = _ACK_WITH_START.pack(ack.index, ack.error_code, ack.base_offset, ack.append_time_ms, ack.start_offset)
    if ack.error_message is None:
        return head + b"\1\0\0"
    message = ack.error_message.encode()
    return head + b"\1" + encode_uvarint(len(message) + 1) + message + b"\0"


def _encode_ack_plain(ack: PartitionAck, version: int) -> bytes:
    if version < 5:
        return _ACK.pack(ack.index, ack.error_code, ack.base_offset, ack.append_time_ms)
    head = _ACK_WITH_START.pack(ack.index, ack.error_code, ack.base_offset, ack.append_time_ms, ack.start_offset)
    if version < 8:
        return head
    if ack.error_message is None:
        return head + b"\0\0\0\0" + _NULL_MESSAGE
    message = ack.error_message.encode()
    return head + b"\0\0\0\0" + _INT16.pack(len(message)) + message
