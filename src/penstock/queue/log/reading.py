"""Read a partition: whole, checked batches from an offset on; offsets by time."""

from __future__ import annotations

from struct import Struct

from crc32c import crc32c

from penstock.errors import PeerError
from penstock.kafka.records.batch import (
    CRC_FROM,
    HEADER_SIZE,
    LEADER_EPOCH,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    decode_header,
)
from penstock.kafka.records.record import decode_records
from penstock.queue.log.aborted_ranges import Aborted, add_between
from penstock.queue.log.log import Log
from penstock.queue.log.point import Point
from penstock.queue.log.scan import Damage, Whole, Window, batch_at, header_fault, walk
from penstock.queue.log.segment import Segment

_WALK = Struct(">qiibIhi")
_OFFSET = Struct(">q")
_FOUND_TIME = tuple[int, int]


class DamagedError(Exception):
    """The record asked for is damaged; the log goes on at `next_offset` (None: only with what comes)."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage.reason)
        self.damage = damage


def read(log: Log, offset: int, bytes_max: int) -> memoryview:
    """Whole batches from the one holding `offset` on, at least one if any is visible, about `bytes_max` of them.

    The caller has checked that `offset` is between start and end. Raises DamagedError, or OSError.
    """
    return read_until(log, offset, bytes_max, log.visible)[0]


def read_until(log: Log, offset: int, bytes_max: int, limit: Point) -> tuple[memoryview, int]:
    """The same, but nothing at or behind `limit`; and the offset behind what was read."""
    if offset >= limit.offset:
        return memoryview(b""), offset
    known = log.boundaries.get(offset)
    if known is not None and known.position < limit.end_in(known.segment):
        return _read_from(log, known.segment, known.position, known.offset, offset, bytes_max, limit)
    segment = log.segment_for(offset)
    position, first = segment.index.floor(offset)
    if position and segment.file.read(position, _OFFSET.size) != _OFFSET.pack(first):
        segment.rebuild_index()  # the log is right, the index is not
        position, first = segment.index.floor(offset)
    return _read_from(log, segment, position, first, offset, bytes_max, limit)


def begin_of(log: Log, offset: int, limit: Point) -> tuple[Segment, int, int]:
    """About where a read from `offset` begins, and what its first batch does not reach beyond; without reading."""
    known = log.boundaries.get(offset)
    if known is not None and known.position < limit.end_in(known.segment):
        return known.segment, known.position, known.segment.index.after(offset)
    segment = log.segment_for(offset)
    return segment, segment.index.floor(offset)[0], segment.index.after(offset)


def aborted_between(log: Log, offset: int, end: int) -> list[Aborted]:
    """Aborted transactions that reach into [offset, end), all of which is decided."""
    found: list[Aborted] = []
    segment: Segment | None = log.segment_for(offset)
    while segment is not None and not add_between(segment.index.aborted, offset, end, found):
        segment = log.segment_after(segment)
    return found


def _read_from(
    log: Log, segment: Segment, position: int, expected: int, offset: int, bytes_max: int, limit: Point
) -> tuple[memoryview, int]:
    end = limit.end_in(segment)
    sure = position, expected
    begun = position
    while position < end:
        # Not beyond the stretch that was asked for, however much of it is skipped: the rest may not be in memory.
        wanted = max(bytes_max - (position - begun), HEADER_SIZE)
        data = segment.file.read(position, min(wanted, end - position))
        begin, stop, following = _whole_batches(data, expected, offset, bytes_max)
        if begin < stop:
            log.remember(Point(following, segment, position + stop))
            return memoryview(data)[begin:stop], following
        position, expected = position + stop, following
        if position >= end:
            break
        # Stopped at a batch that is larger than what was read, or damaged.
        window = Window(segment.file, end, HEADER_SIZE, HEADER_SIZE)
        found = batch_at(window, position, end, expected, verify=True)
        if isinstance(found, BatchHeader):
            if found.next_offset > offset:
                log.remember(Point(found.next_offset, segment, position + found.size))
                data, begin = window.at(position, found.size)
                return memoryview(data)[begin : begin + found.size], found.next_offset
            position, expected = position + found.size, found.next_offset
            continue
        position, expected = sure = _past_damage(log, segment, sure, end, offset)
    after = log.segment_after(segment)
    if after is None or after.base_offset > offset:
        missing = Damage(end, end, expected, after.base_offset if after else None, "records are missing here")
        raise DamagedError(missing)
    return _read_from(log, after, 0, after.base_offset, offset, bytes_max, limit)


def _whole_batches(data: bytes, expected: int, offset: int, bytes_max: int) -> tuple[int, int, int]:
    """Where the batches to serve begin and stop in `data`, and the offset behind them; checked one by one."""
    view = memoryview(data)
    at, begin = 0, -1
    length_of_data = len(data)
    unpack = _WALK.unpack_from
    while at + HEADER_SIZE <= length_of_data:
        base, length, epoch, magic, crc, _, last_delta = unpack(data, at)
        size = length + LENGTH_OVERHEAD
        if base != expected or magic != MAGIC or epoch != LEADER_EPOCH or size < HEADER_SIZE or last_delta < 0:
            break
        if at + size > length_of_data or (begin >= 0 and at + size - begin > bytes_max):
            break
        if begin >= 0 or base + last_delta >= offset:
            if crc32c(view[at + CRC_FROM : at + size]) != crc:
                break
            if begin < 0:
                begin = at
        expected = base + last_delta + 1
        at += size
    return (begin if begin >= 0 else at), at, expected


def _past_damage(log: Log, segment: Segment, sure: tuple[int, int], end: int, offset: int) -> tuple[int, int]:
    """Where the batch with `offset` begins; every batch from `sure` on is checked, as a skipped one may have lied."""
    position, expected = sure
    for found in walk(segment.file, position, end, expected, verify=True):
        if isinstance(found, Damage):
            segment.note_damage(found)
            if found.next_offset is None or found.next_offset > offset:
                raise DamagedError(_up_to_next_segment(log, segment, found))
        elif found.header.next_offset > offset:
            return found.position, found.header.base_offset
        else:
            expected = found.header.next_offset
    return end, expected


def _up_to_next_segment(log: Log, segment: Segment, damage: Damage) -> Damage:
    after = log.segment_after(segment)
    if damage.next_offset is None and after is not None:
        return damage._replace(next_offset=after.base_offset)
    return damage


def offset_for_time(log: Log, timestamp: int) -> _FOUND_TIME | None:
    """The first visible record at or after `timestamp`, as (timestamp, offset)."""
    for segment in log.segments:
        end = log.visible.end_in(segment)
        if end == 0 or segment.index.max_timestamp < timestamp:
            continue
        position, first = segment.index.floor_time(timestamp)
        for found in walk(segment.file, position, end, first, verify=False):
            if isinstance(found, Damage) or found.header.max_timestamp < timestamp:
                continue
            record = _first_record(segment, found.position, found.header, timestamp, log.start_offset)
            if record is not None:
                return record
    return None


def offset_of_latest_time(log: Log) -> _FOUND_TIME | None:
    """The first visible record with the largest timestamp, as (timestamp, offset)."""
    best: _FOUND_TIME | None = None
    for segment in log.segments:
        end = log.visible.end_in(segment)
        if end == 0 or (best is not None and segment.index.max_timestamp <= best[0]):
            continue
        record = _latest_in(log, segment, end)
        if record is not None and (best is None or record[0] > best[0]):
            best = record
    return best


def _latest_in(log: Log, segment: Segment, end: int) -> _FOUND_TIME | None:
    position = segment.index.max_timestamp_position
    if position + HEADER_SIZE <= end:
        header = decode_header(segment.file.read(position, HEADER_SIZE))
        if header_fault(header, header.base_offset) is None:
            record = _first_record(segment, position, header, header.max_timestamp, log.start_offset)
            if record is not None:
                return record
    # The newest record is not visible yet, or deleted, or there is none in that batch: look at all the others.
    best: _FOUND_TIME | None = None
    for found in walk(segment.file, 0, end, segment.base_offset, verify=False):
        if not isinstance(found, Damage) and (best is None or found.header.max_timestamp > best[0]):
            record = _latest_of(segment, found, log.start_offset)
            best = record if record is not None and (best is None or record[0] > best[0]) else best
    return best


def _latest_of(segment: Segment, batch: Whole, start_offset: int) -> _FOUND_TIME | None:
    """The first record with the largest timestamp of those of a batch that are not deleted."""
    position, header = batch
    best: _FOUND_TIME | None = None
    try:
        for record in decode_records(segment.file.read(position, header.size)):
            if record.offset >= start_offset and (best is None or record.timestamp > best[0]):
                best = record.timestamp, record.offset
    except PeerError:
        return header.max_timestamp, header.base_offset
    return best


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> _FOUND_TIME | None:
    """The first record of this batch at or after `timestamp`, by opening it; the batch itself if it does not open."""
    try:
        for record in decode_records(segment.file.read(position, header.size)):
            if record.timestamp >= timestamp and record.offset >= start_offset:
                return record.timestamp, record.offset
    except PeerError:
        return header.max_timestamp, header.base_offset
    return None
