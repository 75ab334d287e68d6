"""Primitives over (buffer, position) for the hand-written codecs, where a Reader would cost too much."""

from __future__ import annotations

from struct import Struct

from penstock.errors import PeerError

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_SMALL = [bytes([value]) for value in range(128)]


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """The number at `at` and where it ends; IndexError when the data ends before."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise PeerError("a variable-length number does not end")
    if value > 0xFFFFFFFF:
        raise PeerError("a variable-length number is too large")
    return value, at


def encode_uvarint(value: int) -> bytes:
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def need(frame: memoryview, at: int, size: int) -> None:
    if size > len(frame) - at:
        raise PeerError(f"{size} bytes are announced, {len(frame) - at} are there")


def count_of(frame: memoryview, at: int, smallest: int) -> tuple[int, int]:
    (count,) = _INT32.unpack_from(frame, at)
    if count > (len(frame) - at) // smallest:
        raise PeerError(f"{count} elements are announced, {len(frame) - at} bytes are there")
    return count, at + 4


def compact_count(frame: memoryview, at: int, smallest: int) -> tuple[int, int]:
    count, at = read_uvarint(frame, at)
    count -= 1
    if count > (len(frame) - at) // smallest:
        raise PeerError(f"{count} elements are announced, {len(frame) - at} bytes are there")
    return count, at


def plain_string(frame: memoryview, at: int) -> tuple[bytes | None, int]:
    (size,) = _INT16.unpack_from(frame, at)
    at += 2
    if size < 0:
        return None, at
    need(frame, at, size)
    return bytes(frame[at : at + size]), at + size


def compact_string(frame: memoryview, at: int) -> tuple[bytes | None, int]:
    size, at = read_uvarint(frame, at)
    if size == 0:
        return None, at
    size -= 1
    need(frame, at, size)
    return bytes(frame[at : at + size]), at + size


def skip_tags(frame: memoryview, at: int) -> int:
    if frame[at] == 0:
        return at + 1
    count, at = read_uvarint(frame, at)
    if count > (len(frame) - at) // 2:
        raise PeerError(f"{count} tagged fields are announced, {len(frame) - at} bytes are there")
    for _ in range(count):
        _, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        need(frame, at, size)
        at += size
    return at
