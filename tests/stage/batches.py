"""Record batches as clients write them, made by hand."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import cramjam
import lz4.frame

from penstock.kafka.records.batch import BatchHeader, encode_batch
from penstock.kafka.records.record import encode_varint

NOW_MS = 1_790_000_000_000
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
Pair = tuple[bytes | None, bytes | None]


def nullable(data: bytes | None) -> bytes:
    return encode_varint(-1) if data is None else encode_varint(len(data)) + data


def record(delta: int, stamp_delta: int, key: bytes | None, value: bytes | None, headers: bytes = b"\0") -> bytes:
    body = b"\0" + encode_varint(stamp_delta) + encode_varint(delta) + nullable(key) + nullable(value) + headers
    return encode_varint(len(body)) + body


def squeeze(codec: int, data: bytes) -> bytes:
    """Compress as clients do."""
    if codec == GZIP:
        packer = zlib.compressobj(wbits=31)
        return packer.compress(data) + packer.flush()
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == LZ4:
        return bytes(lz4.frame.compress(data, block_linked=False))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def xerial(data: bytes, block: int) -> bytes:
    """Snappy in the blocks of the Java library."""
    out = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
    for at in range(0, len(data), block):
        part = squeeze(SNAPPY, data[at : at + block])
        out += len(part).to_bytes(4, "big") + part
    return out


def batch(
    values: Sequence[bytes | Pair | None] = (b"drop",),
    *,
    stamps: Sequence[int] | None = None,
    codec: int = NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    **changes: int,
) -> bytearray:
    """A batch that every broker takes, unless `changes` spoil its header (the checksum is made after them)."""
    pairs: list[Pair] = [value if isinstance(value, tuple) else (None, value) for value in values]
    stamps = stamps or [NOW_MS] * len(pairs)
    records = b"".join(
        record(delta, stamp - stamps[0], key, value)
        for delta, ((key, value), stamp) in enumerate(zip(pairs, stamps, strict=True))
    )
    return raw_batch(squeeze(codec, records), len(pairs), stamps, codec, producer, **changes)


def raw_batch(
    records: bytes,
    count: int,
    stamps: Sequence[int] = (NOW_MS,),
    codec: int = NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    **changes: int,
) -> bytearray:
    """A batch around records that may be nonsense."""
    header = BatchHeader(0, 0, -1, 2, 0, codec, count - 1, stamps[0], max(stamps), *producer, count)
    return encode_batch(header._replace(**changes), records)
