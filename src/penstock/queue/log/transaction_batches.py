"""Append what belongs to a transaction: its batches, and the marker that ends it."""

from __future__ import annotations

from penstock.kafka.records.batch import BatchHeader
from penstock.kafka.records.marker import Marker, encode_marker
from penstock.queue.log.aborted_ranges import Aborted
from penstock.queue.log.log import Log
from penstock.queue.log.point import Point

COORDINATOR_EPOCH = 0  # one node coordinates for ever


def append_transactional(log: Log, batch: memoryview | bytearray, header: BatchHeader, now_ms: int) -> int:
    """Stage a checked batch of a transaction and say its offset, like Log.append."""
    base = log.append(batch, header.last_delta, header.max_timestamp, now_ms)
    replay_batch(log, header._replace(base_offset=base), log.last_staged, now_ms)
    return base


def append_marker(log: Log, producer_id: int, epoch: int, is_commit: bool, now_ms: int) -> int:
    """Stage the end of a producer's transaction and say its offset, like Log.append."""
    producer = log.producers.get(producer_id)
    first = producer.first_offset if producer is not None else -1
    stable = log.transactions.stable_after(first, log.next_offset + 1)
    marker = Marker(is_commit, COORDINATOR_EPOCH, *((-1, -1) if is_commit else (first, stable)))
    base = log.append(encode_marker(producer_id, epoch, marker, now_ms), 0, now_ms, now_ms)
    replay_marker(log, producer_id, epoch, marker, base, now_ms)
    return base


def is_undecided(log: Log, producer_id: int) -> bool:
    """Whether a producer's transaction is open only because what ended it may be damaged."""
    producer = log.producers.get(producer_id)
    if producer is None or producer.first_offset < 0:
        return False
    for segment in reversed(log.segments):
        if any(damage.offset > producer.first_offset for damage in segment.damages):
            return True
        if segment.base_offset <= producer.first_offset:
            break
    return False


def end_stale(log: Log, header: BatchHeader, now_ms: int) -> None:
    """Abort what a producer left open here under an older epoch, before the first batch of a newer one enters.

    The coordinator has ended that transaction and never heard of this partition: nothing in it was acknowledged.
    """
    producer = log.producers.get(header.producer_id)
    if producer is not None and producer.first_offset >= 0 and producer.epoch < header.producer_epoch:
        append_marker(log, header.producer_id, producer.epoch, False, now_ms)


def abort_open(log: Log, now_ms: int) -> None:
    """Abort every open transaction of a memory topic after an unclean stop.

    The marker that ended it may be lost, and then the marker of a later one would pass for it.
    """
    for producer_id, producer in list(log.producers.known.items()):
        if producer.first_offset >= 0:
            append_marker(log, producer_id, producer.epoch, False, now_ms)
    log.flush()


def replay_batch(log: Log, header: BatchHeader, point: Point, now_ms: int) -> None:
    """Stage what a batch at `point` says of its producer and its transaction."""
    begins = log.producers.admit(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
        header.base_offset,
        now_ms,
        header.is_transactional,
    )
    if begins:
        log.transactions.begin(point)


def replay_marker(log: Log, producer_id: int, epoch: int, marker: Marker, offset: int, now_ms: int) -> None:
    """Stage what a marker at `offset` says of its producer and its transaction."""
    first = log.producers.end(producer_id, epoch, now_ms)
    if first >= 0:
        is_range = marker.first_offset >= 0
        aborted = Aborted(producer_id, marker.first_offset, offset, marker.stable_offset) if is_range else None
        log.transactions.end(first, offset, aborted)
