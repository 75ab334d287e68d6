"""The header of a batch: every lie is refused, and what the broker writes into it keeps the checksum right."""

from __future__ import annotations

from typing import Any

import pytest
from stage.batches import NOW_MS, batch

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import (
    CONTROL,
    LEADER_EPOCH,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    assign_append_time,
    assign_offset,
    crc_matches,
    decode_header,
    encode_filler,
    is_plausible,
    refusal,
)
from penstock.kafka.records.record import decode_records


def refused_code(data: bytearray) -> ErrorCode | None:
    found = refusal(data, decode_header(data))
    return None if found is None else found.code


def test_an_honest_batch_passes() -> None:
    """What clients send is stored."""
    assert refused_code(batch([b"a", b"b"], stamps=[NOW_MS, NOW_MS + 5], producer=(7, 0, 0))) is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"record_count": -1}, ErrorCode.INVALID_RECORD),
        ({"record_count": 3}, ErrorCode.INVALID_RECORD),
        ({"last_delta": 0}, ErrorCode.INVALID_RECORD),
        ({"last_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"last_delta": 2**31 - 1}, ErrorCode.INVALID_RECORD),
        ({"attributes": CONTROL}, ErrorCode.INVALID_RECORD),
        ({"attributes": CONTROL | TRANSACTIONAL}, ErrorCode.INVALID_RECORD),
        ({"attributes": TRANSACTIONAL}, ErrorCode.INVALID_RECORD),
        ({"attributes": LOG_APPEND_TIME}, ErrorCode.INVALID_TIMESTAMP),
        ({"attributes": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"attributes": 7}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"max_timestamp": NOW_MS - 1}, ErrorCode.INVALID_TIMESTAMP),
        ({"producer_id": 1, "producer_epoch": -1, "base_sequence": 0}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1, "producer_epoch": 0, "base_sequence": -1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_header_that_lies_is_refused(changes: dict[str, Any], code: ErrorCode) -> None:
    """A right checksum does not make a wrong header true."""
    assert refused_code(batch([b"a", b"b"], **changes)) is code


@pytest.mark.parametrize(
    ("position", "value", "code"),
    [
        (16, 1, ErrorCode.INVALID_RECORD),
        (16, 3, ErrorCode.INVALID_RECORD),
        (11, 200, ErrorCode.CORRUPT_MESSAGE),
        (8, 0xFF, ErrorCode.CORRUPT_MESSAGE),
        (11, 0, ErrorCode.CORRUPT_MESSAGE),
        (17, 0x5A, ErrorCode.CORRUPT_MESSAGE),
        (60, 0x5A, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_spoiled_bytes_are_refused(position: int, value: int, code: ErrorCode) -> None:
    """Format, length and checksum are compared with what was sent."""
    data = batch([b"a"])
    data[position] = value
    assert refused_code(data) is code


def test_two_batches_for_one_partition_are_refused() -> None:
    """Format 2 allows one batch a partition; the second would get no offset."""
    two = batch([b"a"]) + batch([b"b"])
    assert refused_code(two) is ErrorCode.INVALID_RECORD


def test_every_flipped_byte_under_the_checksum_is_noticed() -> None:
    """From the attributes to the last byte of the last record."""
    honest = batch([b"a", b"bc"])
    for position in range(17, len(honest)):
        data = bytearray(honest)
        data[position] ^= 0x10
        assert refused_code(data) is ErrorCode.CORRUPT_MESSAGE


def test_a_place_in_the_log_leaves_the_checksum_right() -> None:
    """Offset and epoch stand before the checksum."""
    data = batch([b"a", b"b", b"c"])
    assign_offset(data, 2**40)
    header = decode_header(data)
    assert crc_matches(data, 0, header)
    assert (header.base_offset, header.last_offset, header.next_offset) == (2**40, 2**40 + 2, 2**40 + 3)
    assert header.leader_epoch == LEADER_EPOCH
    assert [record.offset for record in decode_records(data)] == [2**40, 2**40 + 1, 2**40 + 2]


def test_append_time_is_the_time_of_all_records_and_the_checksum_stays_right() -> None:
    """message.timestamp.type=LogAppendTime: the broker's clock counts, not the client's."""
    data = batch([b"a", b"b"], stamps=[5, 9], codec=1)
    assign_append_time(data, NOW_MS)
    header = decode_header(data)
    assert crc_matches(data, 0, header)
    assert header.attributes == LOG_APPEND_TIME | 1
    assert [record.timestamp for record in decode_records(data)] == [NOW_MS, NOW_MS]


def test_filler_takes_offsets_without_records_for_users() -> None:
    """It is a batch like any other to whoever walks the log, and a control batch, which clients skip."""
    data = encode_filler(10, 25, NOW_MS)
    header = decode_header(data)
    assert crc_matches(data, 0, header)
    assert is_plausible(header, 10)
    assert (header.base_offset, header.next_offset) == (10, 25)
    assert header.attributes == CONTROL
    assert list(decode_records(data)) == []
