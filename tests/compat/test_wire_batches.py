"""Batches that lie are refused as Kafka refuses them, and nothing of them is stored."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from typing import NamedTuple

import pytest
from asking.batches import NOW_MS, Line, batch_of, lines, patched, plain_body
from asking.connection import Connection
from asking.requests import LATEST, MAX_TIMESTAMP, create_topic, fetch, list_offset, produce

from penstock.drills.broker_process import BrokerProcess
from penstock.errors import ErrorCode
from penstock.kafka.records.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, decode_header

GOOD = batch_of(lines("one", "two", "three"))
LENGTH_AT, MAGIC_AT, ATTRIBUTES_AT, LAST_DELTA_AT = 8, 16, 21, 23
MAX_TIME_AT, COUNT_AT = 35, 57
DAY_MS = 86_400_000


def _int32(value: int) -> bytes:
    return struct.pack(">i", value)


def _time(value: int) -> bytes:
    return struct.pack(">q", value)


class Lie(NamedTuple):
    """What is wrong with a batch, and what each broker says to it."""

    batch: Callable[[], bytes | bytearray | None]
    kafka: int
    penstock: int


E_ = ErrorCode


def _lie(make: Callable[[], bytes | bytearray | None], kafka: int, penstock: int | None = None) -> Lie:
    return Lie(make, kafka, kafka if penstock is None else penstock)


def _changed(at: int, new: bytes) -> Callable[[], bytearray]:
    return lambda: patched(GOOD, at, new)


def _attributes(bits: int) -> Callable[[], bytearray]:
    return _changed(ATTRIBUTES_AT, struct.pack(">h", bits))


def _body(body: bytes, attributes: int = 0) -> Callable[[], bytearray]:
    return lambda: batch_of(lines("one"), attributes=attributes, body=body)


ONE, TWO = plain_body(lines("one")), plain_body(lines("one", "two"))

# The reason of every difference is in docs/differences.md.
IN_THE_HEADER = {
    "wrong checksum": _lie(lambda: patched(GOOD, 65, b"\x7f", seal=False), E_.CORRUPT_MESSAGE),
    "more records than offsets": _lie(_changed(COUNT_AT, _int32(5)), E_.INVALID_RECORD),
    "fewer records than offsets": _lie(_changed(COUNT_AT, _int32(1)), E_.INVALID_RECORD),
    "no records": _lie(_changed(COUNT_AT, _int32(0)), E_.INVALID_RECORD),
    "negative count": _lie(_changed(COUNT_AT, _int32(-1)), E_.INVALID_RECORD),
    "last offset too high": _lie(_changed(LAST_DELTA_AT, _int32(9)), E_.INVALID_RECORD),
    "last offset negative": _lie(_changed(LAST_DELTA_AT, _int32(-1)), E_.INVALID_RECORD),
    "control bit": _lie(_attributes(CONTROL), E_.INVALID_RECORD),
    "transaction nobody began": _lie(_attributes(TRANSACTIONAL), E_.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    "claims log append time": _lie(_attributes(LOG_APPEND_TIME), E_.NONE, E_.INVALID_TIMESTAMP),
    "unknown codec": _lie(_attributes(5), E_.UNKNOWN_SERVER_ERROR, E_.UNSUPPORTED_COMPRESSION_TYPE),
    "magic 0": _lie(_changed(MAGIC_AT, b"\0"), E_.INVALID_RECORD),
    "magic 1": _lie(_changed(MAGIC_AT, b"\1"), E_.INVALID_RECORD),
    "magic 3": _lie(_changed(MAGIC_AT, b"\3"), E_.CORRUPT_MESSAGE, E_.INVALID_RECORD),
    "two batches": _lie(lambda: GOOD + GOOD, E_.INVALID_RECORD),
    "length too large": _lie(_changed(LENGTH_AT, _int32(len(GOOD))), E_.INVALID_RECORD, E_.CORRUPT_MESSAGE),
    "length too small": _lie(_changed(LENGTH_AT, _int32(len(GOOD) - 13)), E_.CORRUPT_MESSAGE, E_.INVALID_RECORD),
    "length negative": _lie(_changed(LENGTH_AT, _int32(-5)), E_.CORRUPT_MESSAGE),
    "length zero": _lie(_changed(LENGTH_AT, _int32(0)), E_.CORRUPT_MESSAGE),
    "cut short": _lie(lambda: GOOD[:-1], E_.INVALID_RECORD, E_.CORRUPT_MESSAGE),
    "half a header": _lie(lambda: GOOD[:30], E_.INVALID_RECORD, E_.CORRUPT_MESSAGE),
    "empty": _lie(lambda: b"", E_.INVALID_RECORD, E_.CORRUPT_MESSAGE),
    "bytes behind the batch": _lie(lambda: GOOD + b"\0" * 7, E_.NONE, E_.INVALID_RECORD),
    "far future": _lie(lambda: batch_of([Line(b"v", timestamp=NOW_MS + DAY_MS)]), E_.INVALID_TIMESTAMP),
    "largest time before the first": _lie(_changed(MAX_TIME_AT, _time(NOW_MS - DAY_MS)), E_.NONE, E_.INVALID_TIMESTAMP),
    "largest time larger than any": _lie(_changed(MAX_TIME_AT, _time(NOW_MS + 1000)), E_.NONE),
    "producer without a sequence": _lie(
        lambda: batch_of(lines("one"), producer_id=1, epoch=0, sequence=-1), E_.INVALID_RECORD
    ),
    "producer without an epoch": _lie(
        lambda: batch_of(lines("one"), producer_id=1, epoch=-1, sequence=0), E_.NONE, E_.INVALID_RECORD
    ),
}
IN_THE_RECORDS = {
    "gzip bit without gzip": _lie(_attributes(1), E_.UNKNOWN_SERVER_ERROR, E_.INVALID_RECORD),
    "gzip of nonsense": _lie(_body(gzip.compress(b"\xff" * 40), attributes=1), E_.INVALID_RECORD),
    "fewer records than claimed": _lie(
        lambda: patched(patched(GOOD, COUNT_AT, _int32(5)), LAST_DELTA_AT, _int32(4)), E_.INVALID_RECORD
    ),
    "records end early": _lie(_body(ONE[:-2]), E_.INVALID_RECORD),
    "bytes behind the records": _lie(_body(ONE + b"\0\0"), E_.INVALID_RECORD),
    "a record with a wrong offset": _lie(_body(TWO[len(ONE) :]), E_.NONE, E_.INVALID_RECORD),
}
LIES = IN_THE_HEADER | IN_THE_RECORDS


@pytest.mark.parametrize("lie", LIES)
def test_a_batch_that_lies_is_refused(connection: Connection, broker: str, lie: str, topic: str) -> None:
    """The error code is Kafka's, or the table says why not; what is refused takes no offset."""
    create_topic(connection, topic)
    expected = getattr(LIES[lie], broker)

    answer = produce(connection, topic, LIES[lie].batch())

    assert answer.error_code == expected, answer
    if expected != ErrorCode.NONE:
        assert answer.base_offset == -1
        assert list_offset(connection, topic, LATEST) == (0, -1, 0)


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_among_honest_batches_is_refused_too(connection: Connection, broker: str, lie: str, topic: str) -> None:
    """A client whose requests have been fine is looked at as closely as a stranger."""
    create_topic(connection, topic)
    expected = getattr(LIES[lie], broker)
    offsets = [produce(connection, topic, GOOD).base_offset for _ in range(3)]
    answer = produce(connection, topic, LIES[lie].batch())
    assert answer.error_code == expected, answer
    after = produce(connection, topic, GOOD)
    assert offsets == [0, 3, 6]
    assert after.error_code == 0
    if expected != ErrorCode.NONE:
        assert after.base_offset == 9


def test_no_batch_at_all_is_refused(penstock_node: BrokerProcess, topic: str) -> None:
    """Null in place of a batch has an answer; Kafka 4.3.1 leaves its client waiting for ever."""
    with Connection(penstock_node.address) as connection:
        create_topic(connection, topic)
        assert ErrorCode(produce(connection, topic, None).error_code) is ErrorCode.CORRUPT_MESSAGE


def test_the_honest_batch_is_stored(connection: Connection, topic: str) -> None:
    """What the lies are made from is fine."""
    create_topic(connection, topic)
    assert produce(connection, topic, GOOD).error_code == 0
    assert list_offset(connection, topic, LATEST) == (0, -1, 3)


def test_the_largest_time_in_a_header_is_corrected_or_believed(connection: Connection, broker: str, topic: str) -> None:
    """Kafka opens the batch and finds the true one; ours, which does not, finds a record when asked for the latest."""
    create_topic(connection, topic)
    claimed = NOW_MS + 1000
    assert produce(connection, topic, patched(GOOD, MAX_TIME_AT, _time(claimed))).error_code == 0
    stored = fetch(connection, topic, 0).records
    assert stored is not None
    assert decode_header(stored).max_timestamp == (claimed if broker == "penstock" else NOW_MS)
    assert list_offset(connection, topic, MAX_TIMESTAMP) == (0, NOW_MS, 0)
