"""Opening compressed batches, with a cap on what comes out."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import cramjam

from penstock.errors import PeerError
from penstock.ports import Buffer

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD = 16
_NO_ROOM = "write whole buffer"


def decompress(codec: int, data: Buffer, bytes_max: int) -> bytes:
    """The records inside, at most `bytes_max`; PeerError for nonsense, a bomb or an unknown codec."""
    if codec == 0:
        return bytes(data)
    try:
        if codec == GZIP:
            return _gunzip(bytes(data), bytes_max)
        if codec == SNAPPY:
            return _unsnap(bytes(data), bytes_max)
        if codec == LZ4:
            return _into(cramjam.lz4.decompress_into, data, bytes_max)
        if codec == ZSTD:
            return _into(cramjam.zstd.decompress_into, data, bytes_max)
    except (cramjam.DecompressionError, zlib.error, OSError, ValueError) as wrong:
        raise PeerError(f"compressed records cannot be opened: {wrong}") from None
    raise PeerError(f"unknown compression codec {codec}")


def _gunzip(data: bytes, bytes_max: int) -> bytes:
    """One gzip stream, or several glued together, as Java's reader takes them."""
    out = []
    while data:
        stream = zlib.decompressobj(wbits=31)
        part = stream.decompress(data, bytes_max + 1)
        if len(part) > bytes_max:
            raise PeerError(f"records open to more than {bytes_max} bytes")
        if not stream.eof:
            raise PeerError("compressed records end too early")
        out.append(part)
        bytes_max -= len(part)
        data = stream.unused_data
    return b"".join(out)


def _unsnap(data: bytes, bytes_max: int) -> bytes:
    """Snappy as Kafka's clients write it: plain, or in the blocks of the xerial Java library."""
    if not data.startswith(_XERIAL):
        return _unsnap_block(data, bytes_max)
    out, at = [], _XERIAL_HEAD
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        block = _unsnap_block(data[at + 4 : at + 4 + size], bytes_max)
        out.append(block)
        bytes_max -= len(block)
        at += 4 + size
    return b"".join(out)


def _unsnap_block(block: bytes, bytes_max: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > bytes_max:
        raise PeerError(f"records open to more than {bytes_max} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))


def _into(decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, bytes_max: int) -> bytes:
    """Open into a buffer of our own size, larger at each try: the claimed size is never believed."""
    room = min(max(1 << 20, 4 * len(data)), bytes_max)
    while True:
        out = bytearray(room)
        try:
            size = decompress_into(data, out)
        except cramjam.DecompressionError as wrong:
            # Only for want of room: trying nonsense again and again in larger buffers would cost 0.1 s a batch.
            if room >= bytes_max or _NO_ROOM not in str(wrong):
                raise
            room = min(room * 8, bytes_max)
            continue
        return bytes(memoryview(out)[:size])
