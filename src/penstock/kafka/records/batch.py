"""The header of a record batch (magic 2): read, check and patch it; the records stay opaque."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from penstock.errors import ErrorCode
from penstock.ports import Buffer

HEADER = Struct(">qiibIhiqqqhii")
unpack_facts: Final = Struct(">8xi4xbIhiqqqhii").unpack_from  # the header but for its place: offset and leader epoch
HEADER_SIZE: Final = 61
LENGTH_OVERHEAD: Final = 12  # base offset and length itself are not counted in length
CRC_FROM: Final = 21

_place: Final = Struct(">qii").pack_into
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_LONG = Struct(">q")
_CRC_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 35

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

MAGIC: Final = 2
LEADER_EPOCH: Final = 0  # one node leads for ever, and consumers only see what is durable: logs never diverge


class BatchHeader(NamedTuple):
    """The 61 bytes before the records."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_delta + 1

    @property
    def is_control(self) -> bool:
        """Whether it is written by brokers for clients' libraries, and holds nothing for users."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)


def decode_header(data: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`; the caller has made sure that 61 bytes are there."""
    return BatchHeader._make(HEADER.unpack_from(data, at))


def is_plausible(header: BatchHeader, next_offset: int) -> bool:
    """Whether bytes could be a stored batch at or behind `next_offset`; the checksum decides."""
    return (
        header.magic == MAGIC
        and header.length >= HEADER_SIZE - LENGTH_OVERHEAD
        and header.base_offset >= next_offset
        and header.last_delta >= 0
        and header.record_count >= 0
    )


def crc_matches(data: Buffer, at: int, header: BatchHeader) -> bool:
    """Whether the checksum of the batch at `at`, which lies wholly in `data`, is right."""
    return bool(crc32c(memoryview(data)[at + CRC_FROM : at + header.length + LENGTH_OVERHEAD]) == header.crc)


class Refusal(NamedTuple):
    """Why a produced batch is not stored."""

    code: ErrorCode
    message: str


def refusal(batch: Buffer, header: BatchHeader) -> Refusal | None:
    """Why this produced batch must not be stored, from its header and checksum alone, or None."""
    (_, length, _, magic, crc, attributes, last_delta, base_ts, max_ts, pid, epoch, sequence, count) = header
    if magic != MAGIC:
        return Refusal(ErrorCode.INVALID_RECORD, f"record format {magic} is not supported, only 2")
    if length != len(batch) - LENGTH_OVERHEAD:
        if HEADER_SIZE - LENGTH_OVERHEAD <= length < len(batch) - LENGTH_OVERHEAD:
            return Refusal(ErrorCode.INVALID_RECORD, "a produce request carries exactly one batch a partition")
        return Refusal(ErrorCode.CORRUPT_MESSAGE, f"batch length {length} does not fit {len(batch)} bytes sent")
    if crc32c(memoryview(batch)[CRC_FROM:]) != crc:
        return Refusal(ErrorCode.CORRUPT_MESSAGE, "checksum of the batch does not match")
    if count <= 0 or last_delta != count - 1:
        return Refusal(ErrorCode.INVALID_RECORD, f"{count} records do not span offsets 0 to {last_delta}")
    if attributes & (CONTROL | LOG_APPEND_TIME):
        return _refused_attributes(attributes)
    if attributes & CODEC_MASK >= len(CODECS):
        return Refusal(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"unknown codec {attributes & CODEC_MASK}")
    if max_ts < base_ts:
        return Refusal(ErrorCode.INVALID_TIMESTAMP, "largest timestamp is before the first one")
    if pid >= 0 and (epoch < 0 or sequence < 0):
        return Refusal(ErrorCode.INVALID_RECORD, f"producer {pid} without epoch or sequence")
    if pid < 0 and attributes & TRANSACTIONAL:
        return Refusal(ErrorCode.INVALID_RECORD, "a transactional batch without a producer id")
    return None


def _refused_attributes(attributes: int) -> Refusal:
    if attributes & CONTROL:
        return Refusal(ErrorCode.INVALID_RECORD, "control batches are written by brokers only")
    return Refusal(ErrorCode.INVALID_TIMESTAMP, "a producer cannot claim log append time")


def assign_offset(batch: bytearray | memoryview, base_offset: int) -> None:
    """Give the batch its place in the log; neither field is under the checksum."""
    _place(batch, 0, base_offset, len(batch) - LENGTH_OVERHEAD, LEADER_EPOCH)


def assign_append_time(batch: bytearray | memoryview, now_ms: int) -> None:
    """Stamp the batch with the broker's time (message.timestamp.type=LogAppendTime)."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
    _LONG.pack_into(batch, _MAX_TIMESTAMP_AT, now_ms)
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))


def encode_batch(header: BatchHeader, records: Buffer = b"") -> bytearray:
    """A whole batch with right length and checksum; `length`, `magic` and `crc` of `header` are computed."""
    batch = bytearray(HEADER_SIZE + len(records))
    length = len(batch) - LENGTH_OVERHEAD
    HEADER.pack_into(batch, 0, *header._replace(length=length, magic=MAGIC, crc=0))
    batch[HEADER_SIZE:] = records
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))
    return batch


# A control record: version 0, type COMMIT; then a value of version 0 and coordinator epoch 0.
_MARKER = bytes.fromhex("00 00 00 08 0000 0001 0c 0000 00000000 00".replace(" ", ""))


def encode_filler(base_offset: int, next_offset: int, now_ms: int) -> bytearray:
    """A batch without records for users that takes the offsets from `base_offset` up to `next_offset`.

    It is a control batch, which every client skips; librdkafka takes an empty ordinary one for a size problem.
    """
    delta = next_offset - base_offset - 1
    marker = bytes([2 * len(_MARKER)]) + _MARKER
    return encode_batch(
        BatchHeader(base_offset, 0, LEADER_EPOCH, MAGIC, 0, CONTROL, delta, now_ms, now_ms, -1, -1, -1, 1), marker
    )
