"""Transactions in one partition, written as the node writes them, and read as clients read them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.kafka.records.batch import TRANSACTIONAL, decode_header
from penstock.kafka.records.marker import decode_marker
from penstock.kafka.records.record import decode_records
from penstock.queue.log.log import Log
from penstock.queue.log.reading import aborted_between, read_until
from penstock.queue.log.transaction_batches import append_marker, append_transactional
from stage.batches import NOW_MS, batch
from stage.logs import cut


def transactional(values: list[bytes], producer: tuple[int, int, int]) -> bytearray:
    return batch(values, producer=producer, attributes=TRANSACTIONAL)


def stage_part(log: Log, value: bytes, producer: tuple[int, int, int]) -> int:
    """Stage one record of a transaction."""
    data = transactional([value], producer)
    assert log.producers.check(*producer, 1, True) is None
    return append_transactional(log, data, decode_header(data), NOW_MS)


def stage_end(log: Log, producer_id: int, epoch: int = 0, *, commit: bool = True) -> int:
    return append_marker(log, producer_id, epoch, commit, NOW_MS)


def committed_values(log: Log, bytes_max: int = 1 << 20, start: int | None = None) -> list[bytes]:
    """What a client with isolation level read_committed hands to its user, read as Kafka's clients do."""
    found: list[bytes] = []
    offset = log.start_offset if start is None else start
    while offset < log.stable.offset:
        data, following = read_until(log, offset, bytes_max, log.stable)
        aborted = [(one.first_offset, one.producer_id) for one in aborted_between(log, offset, following)]
        found += _without_aborted(data, sorted(aborted), offset)
        offset = following
    return found


def _without_aborted(data: memoryview, aborted: list[tuple[int, int]], offset: int) -> Iterator[bytes]:
    skipped: set[int] = set()
    for one in cut(data):
        header = decode_header(one)
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        if header.is_control:
            if header.producer_id >= 0 and not decode_marker(one).is_commit:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            yield from (record.value or b"" for record in decode_records(one) if record.offset >= offset)
