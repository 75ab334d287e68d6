"""How large a record batch becomes that holds one record, uncompressed. Pure arithmetic, nothing is encoded."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.kafka.records.batch import HEADER_SIZE

_FIXED = 3  # attributes, and the deltas of time and offset: 0 in a batch of one record


def batch_size(key: bytes | None, value: bytes, headers: Iterable[tuple[str, bytes]]) -> int:
    """The bytes that a queue counts against max.message.bytes for a record that is alone in its batch."""
    count, size = 0, _FIXED + (1 if key is None else _field_size(len(key))) + _field_size(len(value))
    for name, text in headers:
        count += 1
        size += _field_size(len(name.encode())) + _field_size(len(text))
    size += _varint_size(count)
    return HEADER_SIZE + _field_size(size)


def _field_size(length: int) -> int:
    return _varint_size(length) + length


def _varint_size(number: int) -> int:
    """Of a zigzag varint that is not negative."""
    return ((number << 1).bit_length() + 6) // 7 or 1
