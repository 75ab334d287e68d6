"""Batches whose records do not lie where their lengths and their count say, one lie each."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from typing import NamedTuple

import cramjam
import lz4.frame

from asking.batches import batch_of, lines, patched
from penstock.kafka.records.record import encode_varint

LAST_DELTA_AT, COUNT_AT = 23, 57
_v = encode_varint


def _xerial(data: bytes) -> bytes:
    """Snappy as the Java library frames it, in one block."""
    block = bytes(cramjam.snappy.compress_raw(data))
    return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block


def _lz4(data: bytes) -> bytes:
    """Blocks of which none refers to an earlier one: Kafka's reader takes no others."""
    return bytes(lz4.frame.compress(data, block_linked=False))


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": gzip.compress,
    "snappy": _xerial,
    "lz4": _lz4,
    "zstd": lambda data: bytes(cramjam.zstd.compress(data)),
}
CODECS = tuple(COMPRESS)


class Framing(NamedTuple):
    """The records of a batch, and how many its header claims."""

    body: bytes
    count: int

    def batch(self, codec: str) -> bytearray:
        return claiming(COMPRESS[codec](self.body), self.count, codec)


def claiming(body: bytes, count: int, codec: str) -> bytearray:
    """A batch around a body, whose header claims `count` records."""
    batch = batch_of(lines("one"), attributes=CODECS.index(codec), body=body)
    return patched(patched(batch, COUNT_AT, struct.pack(">i", count)), LAST_DELTA_AT, struct.pack(">i", count - 1))


def _record(
    delta: int,
    *,
    length: int | None = None,
    stamp: bytes = b"\0",
    key: bytes = b"\1",
    value: bytes = b"\6one",
    headers: bytes = b"\0",
) -> bytes:
    body = b"\0" + stamp + _v(delta) + key + value + headers
    return _v(len(body) if length is None else length) + body


_ONE = _record(0)
_THREE = _ONE + _record(1) + _record(2)
HONEST = {
    "three records": Framing(_THREE, 3),
    "headers": Framing(_record(0, headers=_v(2) + b"\2a\2b" + b"\2a\1"), 1),
    "an empty name of a header": Framing(_record(0, headers=_v(1) + b"\0\1"), 1),
    "a key without a value": Framing(_record(0, key=b"\2k", value=b"\1"), 1),
    "a time before the first": Framing(_ONE + _record(1, stamp=_v(-(10**14))), 2),
}
# Kafka's answer is INVALID_RECORD, with every codec.
REFUSED = {
    "the count is larger": Framing(_THREE, 4),
    "the count is the largest": Framing(_THREE, 2**31 - 1),
    "the count is smaller": Framing(_THREE, 2),
    "no records in a batch of one": Framing(b"", 1),
    "a record without any field": Framing(b"\0", 1),
    "a value longer than the batch": Framing(_record(0, value=_v(200) + b"one"), 1),
    "a value longer than its record": Framing(_record(0, value=_v(8) + b"one") + _record(1), 2),
    "a key longer than the batch": Framing(_record(0, key=_v(200) + b"k"), 1),
    "a key longer than its record": Framing(_record(0, key=_v(20) + b"k") + _record(1) + _record(2), 3),
    "no headers": Framing(_record(0, headers=b""), 1),
    "no headers in the first record": Framing(_record(0, headers=b"") + _record(1), 2),
    "a negative count of headers": Framing(_record(0, headers=_v(-1)), 1),
    "more headers than there are": Framing(_record(0, headers=_v(2) + b"\2a\2b"), 1),
    "fewer headers than there are": Framing(_record(0, headers=b"\0\2a\2b"), 1),
    "the largest count of headers": Framing(_record(0, headers=_v(2**31 - 1)), 1),
    "a header without a name": Framing(_record(0, headers=_v(1) + b"\1\2b"), 1),
    "a name longer than the batch": Framing(_record(0, headers=_v(1) + _v(99) + b"a\2b"), 1),
    "a header longer than the batch": Framing(_record(0, headers=_v(1) + b"\2a" + _v(99) + b"b"), 1),
    "bytes behind the headers": Framing(_record(0, headers=b"\0\0\0"), 1),
    "a time that does not end": Framing(_record(0, stamp=b"\xff" * 11), 1),
    "an offset of six bytes": Framing(_v(14) + b"\0\0" + b"\x80" * 5 + b"\0" + b"\1\6one\0", 1),
    "cut short": Framing(_THREE[:-2], 3),
    "cut in a length": Framing(_ONE + b"\xff", 2),
    "a byte behind the records": Framing(_THREE + b"\0", 3),
}
# Kafka refuses these in a plain batch; of a compressed one it skips keys and values, and does not see them.
SEEN_IN_PLAIN = {
    "a record longer than the batch": Framing(_ONE + _record(1, length=500), 2),
    "a record shorter than its fields": Framing(_record(0, length=5), 1),
    "a record of a negative length": Framing(_v(-1) + _ONE[1:], 1),
}
# Kafka gives these up with UNKNOWN_SERVER_ERROR: a length of more than five bytes in a plain batch, and
# in a compressed one offsets that do not count up from 0, which it would correct if it had not skipped the keys.
LONG_LENGTHS = {
    "a length that does not end": Framing(b"\xff" * 12, 1),
    "a length of six bytes": Framing(b"\x80" * 5 + b"\0" + _ONE, 1),
}
OFFSETS = {
    "equal offsets": Framing(_ONE * 3, 3),
    "offsets from one": Framing(_record(1) + _record(2) + _record(3), 3),
    "offsets backwards": Framing(_record(2) + _record(1) + _record(0), 3),
    "a negative offset": Framing(_record(-1), 1),
}
# Kafka takes every negative length for null. librdkafka does so with -1 alone.
BELOW_NULL = {
    "a value of length -2": Framing(_record(0, value=_v(-2)), 1),
    "a key of length -2": Framing(_record(0, key=_v(-2)), 1),
    "a header of length -2": Framing(_record(0, headers=_v(1) + b"\2a" + _v(-2)), 1),
}


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


# Kafka's answer is UNKNOWN_SERVER_ERROR.
NOT_OPENED = {
    "nonsense": {codec: claiming(b"\xde\xad\xbe\xef" * 10, 3, codec) for codec in CODECS[1:]},
    "half of it": {codec: claiming(_half(COMPRESS[codec](_THREE)), 3, codec) for codec in CODECS[1:]},
    "blocks that refer to earlier ones": {"lz4": claiming(bytes(cramjam.lz4.compress(_THREE)), 3, "lz4")},
}
# Kafka ignores what stands behind, and stores the batch with it.
IGNORED_BEHIND = {
    "bytes behind the stream": {
        codec: claiming(COMPRESS[codec](_THREE) + bytes(5), 3, codec) for codec in ("gzip", "lz4")
    },
    "a second frame": {"lz4": claiming(_lz4(_THREE) * 2, 3, "lz4")},
}
