"""The walk over record lengths says what a plain decoder says, whatever the bytes are."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from stage.batches import nullable, record

from penstock.kafka.records.framing import framing_fault, walk
from penstock.kafka.records.record import encode_varint

KEYS = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.binary(max_size=80), KEYS), max_size=4)
RECORDS = st.lists(st.tuples(st.integers(-(2**62), 2**62), KEYS, KEYS, HEADERS), min_size=1, max_size=12)


class Wrong(Exception):
    """The records do not lie where they say."""


class Plain:
    """Reads one field after the other out of a record, in as few words as possible."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise Wrong
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, bytes_max: int = 5) -> int:
        value = 0
        for place in range(bytes_max):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise Wrong

    def sized(self, *, is_nullable: bool) -> None:
        size = self.number()
        if not (is_nullable and size == -1):
            self.take(size)


def plain_verdict(data: bytes, count: int) -> bool:
    """Whether `count` records fill `data` exactly."""
    batch = Plain(data)
    try:
        for delta in range(count):
            record = Plain(batch.take(batch.number()))
            record.take(1)
            record.number(bytes_max=10)
            if record.number() != delta:
                return False
            record.sized(is_nullable=True)
            record.sized(is_nullable=True)
            headers = record.number()
            if not 0 <= headers <= len(record.data):
                return False
            for _ in range(headers):
                record.sized(is_nullable=False)
                record.sized(is_nullable=True)
            if record.at != len(record.data):
                return False
    except Wrong:
        return False
    return batch.at == len(data)


def body_of(records: list[tuple[int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]]) -> bytes:
    return b"".join(
        record(
            delta,
            stamp,
            key,
            value,
            encode_varint(len(headers)) + b"".join(nullable(name) + nullable(content) for name, content in headers),
        )
        for delta, (stamp, key, value, headers) in enumerate(records)
    )


@given(RECORDS)
def test_sound_records_pass(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]],
) -> None:
    """Null and empty keys and values, headers, large times: all that a client may send."""
    assert framing_fault(body_of(records), len(records)) is None


@given(RECORDS, st.data())
def test_changed_bytes_get_the_verdict_of_the_plain_decoder(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]], data: st.DataObject
) -> None:
    """Bytes are overwritten, removed or added at any place, and the count is changed."""
    body = bytearray(body_of(records))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        new = data.draw(st.binary(max_size=3) | st.sampled_from([b"\xff" * 6, b"\x80\x80\x00", b"\x01", b"\x03"]))
        body[at : at + data.draw(st.integers(0, 3))] = new
    count = data.draw(st.integers(1, len(records) + 1) | st.just(2**31 - 1))
    assert (framing_fault(bytes(body), count) is None) == plain_verdict(bytes(body), count)


@given(st.binary(max_size=64), st.integers(1, 8))
@example(b"\x00", 1)
@example(b"\xff" * 12, 1)
def test_any_bytes_get_the_verdict_of_the_plain_decoder(data: bytes, count: int) -> None:
    assert (framing_fault(data, count) is None) == plain_verdict(data, count)


@given(RECORDS, st.integers(1, 5))
def test_a_walk_in_pieces_ends_where_one_walk_ends(
    records: list[tuple[int, bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]], step: int
) -> None:
    """A large batch is walked in pieces, so that other threads run in between."""
    body, at = body_of(records), 0
    for first in range(0, len(records), step):
        at = walk(body, at, first, min(first + step, len(records)))
    assert at == len(body)


@pytest.mark.parametrize(
    ("body", "count", "fault"),
    [
        (record(0, 0, None, b"v"), 2, "the batch ends before record 1"),
        (record(0, 0, None, b"v") + record(1, 0, None, b"v"), 1, "8 bytes follow record 0, which is the last"),
        (encode_varint(90) + record(0, 0, None, b"v")[1:], 1, "record 0 is longer than its batch"),
        (encode_varint(-1) + record(0, 0, None, b"v")[1:], 1, "record 0 has a length below 0"),
        (record(0, 0, None, b"v") + record(0, 0, None, b"v"), 2, "record 1 does not have the offset delta 1"),
        (record(0, 0, None, b"v", b""), 1, "the batch ends before record 0"),
        (record(0, 0, None, b"v", encode_varint(-1)), 1, "record 0 has an impossible count of headers"),
        (record(0, 0, None, b"v", b"\0\0"), 1, "the fields of record 0 do not fill it exactly"),
    ],
)
def test_a_fault_is_named_with_its_record(body: bytes, count: int, fault: str) -> None:
    assert (framing_fault(body, count) or "").startswith(fault)
