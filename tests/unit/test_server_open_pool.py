"""Large batches are opened by threads, and what is wrong with them is told."""

from __future__ import annotations

import select
import zlib

import pytest
from stage.batches import GZIP, LZ4, NONE, SNAPPY, ZSTD, raw_batch, record, squeeze

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode
from penstock.kafka.records.batch import Refusal
from penstock.queue.core.events import Open, Opened
from penstock.queue.server import open_pool as opening
from penstock.queue.server.open_pool import OpenPool

MIB = 1024 * 1024
COUNT = 3000
RECORDS = b"".join(record(number, 0, None, bytes(1000)) for number in range(COUNT))
CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]


def opened(pool: OpenPool, *batches: bytearray) -> list[Refusal | None]:
    pool.submit(Open(7, [memoryview(batch) for batch in batches]))
    assert select.select([pool.wake_fd], [], [], 60)[0], "no opening ends"
    ((job, refusals),) = pool.collect()
    assert job == 7
    return refusals


@pytest.mark.parametrize("codec", CODECS)
def test_each_batch_gets_its_verdict(codec: int) -> None:
    """Sound, with a count too large and too small, cut, and one that opens to too much."""
    pool = OpenPool(BrokerConfig(opened_bytes_max=4 * MIB))
    sound, larger, smaller, cut, bomb = (
        raw_batch(squeeze(codec, records), count, codec=codec)
        for records, count in (
            (RECORDS, COUNT),
            (RECORDS, COUNT + 1),
            (RECORDS, COUNT - 1),
            (RECORDS[:-1], COUNT),
            (RECORDS * 2, COUNT),
        )
    )
    verdicts = opened(pool, sound, larger, smaller, cut, bomb)
    assert verdicts[0] is None
    found = [(refusal.code, refusal.message) for refusal in verdicts[1:] if refusal is not None]
    assert found[0] == (ErrorCode.INVALID_RECORD, f"the batch ends before record {COUNT} does")
    assert found[1] == (ErrorCode.INVALID_RECORD, f"1010 bytes follow record {COUNT - 2}, which is the last")
    assert found[2] == (ErrorCode.INVALID_RECORD, f"record {COUNT - 1} is longer than its batch")
    if codec == NONE:
        assert found[3][0] is ErrorCode.INVALID_RECORD  # nothing is unpacked, so that no memory is taken for it
    else:
        assert found[3] == (
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the records open to more than {4 * MIB} bytes (opened_bytes_max)",
        )


def test_several_are_opened_at_once_up_to_the_limit() -> None:
    """Every job ends, also those for which no thread was free."""
    pool = OpenPool(BrokerConfig(openings_max=2))
    batch = memoryview(raw_batch(squeeze(GZIP, RECORDS), COUNT, codec=GZIP))
    for job in range(5):
        pool.submit(Open(job, [batch]))
    ended: list[Opened] = []
    while len(ended) < 5:
        assert select.select([pool.wake_fd], [], [], 60)[0], "no opening ends"
        ended += pool.collect()
    assert sorted(ended) == [Opened(job, [None]) for job in range(5)]
    assert pool._threads == 2


def test_bytes_that_no_compressor_wrote_are_refused() -> None:
    """A thread that met them goes on with the next job."""
    pool = OpenPool(BrokerConfig())
    junk = zlib.compress(b"not gzip")
    for codec in CODECS[1:]:
        (refusal,) = opened(pool, raw_batch(junk, 1, codec=codec))
        assert refusal is not None
        assert refusal.code is ErrorCode.INVALID_RECORD


def test_a_batch_whose_check_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request without an answer would wait for ever, and so would every later one of its connection."""

    def fail(*_: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(opening, "large_refusal", fail)
    (refusal,) = opened(OpenPool(BrokerConfig()), raw_batch(RECORDS, COUNT))
    assert refusal is not None
    assert refusal.code is ErrorCode.UNKNOWN_SERVER_ERROR
