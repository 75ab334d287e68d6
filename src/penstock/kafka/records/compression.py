"""Opening compressed batches, with a cap on what comes out."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import cramjam

from penstock.errors import PeerError
from penstock.ports import Buffer

GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEAD: Final = 16
_SNAPPY_RATIO_MAX: Final = 22  # a copy of 64 bytes takes 3
_NO_ROOM: Final = "write whole buffer"
_ROOM_LEAST: Final = 64 * 1024
_GZIP_INPUT: Final = 8 * 1024  # copied for each stream: a batch may be made of thousands of tiny ones
_GZIP_OUTPUT: Final = 1024 * 1024


class OpensTooLargeError(PeerError):
    """The records inside take more bytes than the caller allows."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the records open to more than {bytes_max} bytes")


def decompress(codec: int, data: Buffer, bytes_max: int) -> bytes:
    """The records inside, at most `bytes_max`; PeerError for nonsense, a bomb or an unknown codec."""
    return bytes(data) if codec == 0 else bytes(open_records(codec, data, bytes_max))


def open_records(codec: int, data: Buffer, bytes_max: int) -> bytearray:
    """The records inside compressed data; it takes memory for what comes out, not for what the data claims.

    OpensTooLargeError beyond `bytes_max`, PeerError for nonsense or an unknown codec.
    """
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


def _gunzip(data: bytes, bytes_max: int) -> bytearray:
    """One gzip stream, or several glued together, as Java's reader takes them."""
    out, at = bytearray(), 0
    stream = zlib.decompressobj(wbits=31)
    while at < len(data):
        if stream.eof:
            stream = zlib.decompressobj(wbits=31)
        piece = data[at : at + _GZIP_INPUT]
        at += len(piece)
        is_more = True
        while is_more:
            part = stream.decompress(piece, _GZIP_OUTPUT)
            out += part
            if len(out) > bytes_max:
                raise OpensTooLargeError(bytes_max)
            piece = stream.unconsumed_tail
            is_more = not stream.eof and (bool(piece) or len(part) == _GZIP_OUTPUT)
        at -= len(stream.unused_data)
    if data and not stream.eof:
        raise PeerError("compressed records end too early")
    return out


def _unsnap(data: bytes, bytes_max: int) -> bytearray:
    """Snappy as Kafka's clients write it: plain, or in the blocks of the xerial Java library."""
    if not data.startswith(_XERIAL):
        return _unsnap_block(data, bytes_max, bytes_max)
    out, at = bytearray(), _XERIAL_HEAD
    while at + 4 <= len(data):
        if data.startswith(_XERIAL, at):
            at += _XERIAL_HEAD
            continue
        size = int.from_bytes(data[at : at + 4], "big")
        out += _unsnap_block(data[at + 4 : at + 4 + size], bytes_max - len(out), bytes_max)
        at += 4 + size
    return out


def _unsnap_block(block: bytes, left: int, bytes_max: int) -> bytearray:
    claimed = cramjam.snappy.decompress_raw_len(block)
    if claimed > left:
        raise OpensTooLargeError(bytes_max)
    if claimed > _SNAPPY_RATIO_MAX * len(block):
        raise PeerError(f"compressed records cannot be opened: {len(block)} bytes of snappy claim {claimed}")
    out = bytearray(claimed)
    cramjam.snappy.decompress_raw_into(block, out)
    return out


def _into(decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, bytes_max: int) -> bytearray:
    """Open into a buffer of our own size, larger at each try: the claimed size is never believed."""
    room = min(max(_ROOM_LEAST, 8 * len(data)), bytes_max)
    while True:
        out = bytearray(room)
        try:
            size = decompress_into(data, out)
        except cramjam.DecompressionError as wrong:
            # Only for want of room: trying nonsense again and again in larger buffers would cost 0.1 s a batch.
            if _NO_ROOM not in str(wrong):
                raise
            if room >= bytes_max:
                raise OpensTooLargeError(bytes_max) from None
            room = min(room * 8, bytes_max)
            continue
        del out[size:]
        return out
