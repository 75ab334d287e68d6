"""Open a partition after any kind of stop: keep all that may have been acknowledged, cut only what cannot have been."""

from __future__ import annotations

from typing import NamedTuple

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError, SyncFailedError
from penstock.kafka.records.marker import is_marker
from penstock.ports import Disk, File
from penstock.queue.log.durable_point import DurablePoint, decode_durable_point
from penstock.queue.log.layout import LOG, PRODUCERS, TORN, WITNESS, base_offsets, file_name
from penstock.queue.log.log import Log
from penstock.queue.log.point import Point
from penstock.queue.log.producer_snapshot import decode_snapshot
from penstock.queue.log.producers import ProducerTable
from penstock.queue.log.scan import WINDOW_BYTES, Damage, Whole, intact_at, is_zero, walk
from penstock.queue.log.segment import Segment
from penstock.queue.log.transaction_batches import abort_open, replay_batch, replay_marker


class _Start(NamedTuple):
    """Where scanning begins; `proven` says that whatever is bad from there on was never acknowledged.

    Below `acknowledged` nothing is ever cut.
    """

    segment: int
    position: int
    offset: int
    proven: bool
    acknowledged: int


def open_log(disk: Disk, folder: str, config: TopicConfig, limits: BrokerConfig, now_ms: int) -> Log:
    """The log in `folder`, recovered. StorageError if the disk fails or acknowledged files are missing."""
    try:
        return _open(disk, folder, config, limits, now_ms)
    except OSError as error:
        raise StorageError(f"opening {folder} failed: {error}") from error


def _open(disk: Disk, folder: str, config: TopicConfig, limits: BrokerConfig, now_ms: int) -> Log:
    names = disk.names(folder)
    witness, witness_file = _read_witness(disk, folder, names)
    segments = [_existing(disk, folder, base) for base in base_offsets(names, LOG)]
    if not segments:
        if witness is not None and witness.offset > 0:
            raise StorageError(f"{folder} held records up to offset {witness.offset}, but its log files are missing")
        segments = [Segment.create(disk, folder, 0)]
        log = Log(disk, folder, config, limits, segments)
        log.recover_to(log.written, witness, witness_file)
        log.folder_dirty = True
        if witness_file is None:
            _ = log.witness.file
        return log

    start = _scan_start(segments, witness)
    segments = _cut_tail(disk, folder, segments, start) or [Segment.create(disk, folder, start.acknowledged)]
    log = Log(disk, folder, config, limits, segments)
    log.folder_dirty = True  # a file that was never written to may have a name that was never synced
    end = max(segments[-1].next_offset, witness.offset if witness else 0)
    if end > segments[-1].next_offset:
        # The end is damaged: leave it as it is, and go on behind every offset that was acknowledged.
        log.segments.append(Segment.create(disk, folder, end))
        log.active = log.segments[-1]
    _make_durable(disk, folder, log.segments, start)
    log.recover_to(Point(end, log.active, log.active.end), witness, witness_file)
    log.torn = [name for name in disk.names(folder) if name.endswith(TORN)]
    _remove_stale_snapshots(log, names)
    _recover_producers(log, names, now_ms)
    if log.fill_reserved(now_ms):
        abort_open(log, now_ms)
    return log


def _existing(disk: Disk, folder: str, base_offset: int) -> Segment:
    segment = Segment(disk, folder, base_offset, 0)
    segment.end = segment.file.size()
    return segment


def _read_witness(disk: Disk, folder: str, names: list[str]) -> tuple[DurablePoint | None, File | None]:
    if WITNESS not in names:
        return None, None
    file = disk.open(f"{folder}/{WITNESS}")
    return decode_durable_point(file.read(0, file.size())), file


def _scan_start(segments: list[Segment], witness: DurablePoint | None) -> _Start:
    if witness is None:
        return _Start(0, 0, segments[0].base_offset, proven=False, acknowledged=0)
    for number, segment in enumerate(segments):
        if segment.base_offset == witness.segment and segment.end >= witness.position:
            return _Start(number, witness.position, witness.offset, proven=True, acknowledged=witness.offset)
    if witness.position == 0:
        # The segment never got a durable name, since nothing in it was acknowledged: nor was anything behind it.
        behind = [n for n, segment in enumerate(segments) if segment.base_offset > witness.segment]
        number = behind[0] if behind else len(segments)
        return _Start(number, 0, witness.offset, proven=True, acknowledged=witness.offset)
    # Something acknowledged is missing, so nothing that follows may be taken for an unacknowledged tail.
    below = [n for n, segment in enumerate(segments) if segment.base_offset <= witness.segment]
    number = below[-1] if below else 0
    return _Start(number, 0, segments[number].base_offset, proven=False, acknowledged=witness.offset)


def _cut_tail(disk: Disk, folder: str, segments: list[Segment], start: _Start) -> list[Segment]:
    """Verify everything behind the durable point; keep the whole part of it."""
    position, offset = start.position, start.offset
    for number in range(start.segment, len(segments)):
        segment = segments[number]
        is_last = number == len(segments) - 1
        if position == 0 and segment.base_offset != offset and start.proven:
            _set_aside(disk, folder, segments[number:])
            return segments[:number]
        offset = segment.base_offset if position == 0 else offset
        for found in walk(segment.file, position, segment.end, offset, verify=True):
            if not isinstance(found, Damage):
                offset = found.header.next_offset
            elif start.proven or (is_last and found.next_offset is None and found.offset >= start.acknowledged):
                _cut(disk, folder, segment, found.position)
                _set_aside(disk, folder, segments[number + 1 :])
                return segments[: number + 1]
            else:
                segment.note_damage(found)
                offset = found.next_offset if found.next_offset is not None else offset
        position = 0
    return segments


def _cut(disk: Disk, folder: str, segment: Segment, position: int) -> None:
    """Cut the segment at `position`; bytes that were ever written are kept in a file beside it."""
    end = segment.end
    if not is_zero(segment.file, position, end):
        torn = disk.create(f"{folder}/{file_name(segment.base_offset, '')}-{position}{TORN}")
        torn.write(0, (segment.file.read(position, end - position),))
        _sync(torn)
        torn.close()
        disk.sync_folder(folder)
    segment.file.truncate(position)
    _sync(segment.file)
    segment.end = position


def _sync(file: File) -> None:
    try:
        file.sync()
    except OSError as error:
        raise SyncFailedError(f"syncing {file.path} failed: {error}") from error


def _set_aside(disk: Disk, folder: str, segments: list[Segment]) -> None:
    for segment in segments:
        segment.close()
        if segment.end:
            disk.rename(segment.path, f"{folder}/{file_name(segment.base_offset, '')}-0{TORN}")
        else:
            disk.remove(segment.path)
        disk.remove(segment.index_path)
    if segments:
        disk.sync_folder(folder)


def _make_durable(disk: Disk, folder: str, segments: list[Segment], start: _Start) -> None:
    """What a killed broker wrote may still be in memory only: sync it before anybody may see it."""
    behind = segments[start.segment :]
    dirty = [s for s in behind if s.end > (start.position if s is behind[0] else 0)]
    if len(behind) > 1 and behind[0] not in dirty:
        # It was cut to its size when the next one began, perhaps in memory only: what came back would be damage,
        # also where nothing was written behind it yet.
        dirty.insert(0, behind[0])
    try:
        for segment in dirty:
            _write_again(segment, start.position if segment is behind[0] else 0)
            if segment is not segments[-1]:
                segment.file.truncate(segment.end)  # again, as with pages: a sync of it may have failed
            segment.file.sync()
        if dirty:
            disk.sync_folder(folder)
    except OSError as error:
        raise SyncFailedError(f"syncing {folder} failed: {error}") from error


def _write_again(segment: Segment, position: int) -> None:
    """A sync that failed before the restart left pages that count as clean: only pages written again reach the disk."""
    while position < segment.end:
        data = segment.file.read(position, min(WINDOW_BYTES, segment.end - position))
        segment.file.write(position, (data,))
        position += len(data)


def _remove_stale_snapshots(log: Log, names: list[str]) -> None:
    """Snapshots of a tail that is gone must not be found again when the log has grown past them."""
    stale = [base for base in base_offsets(names, PRODUCERS) if base > log.next_offset]
    for base in stale:
        log.disk.remove(f"{log.folder}/{file_name(base, PRODUCERS)}")
    if stale:
        log.disk.sync_folder(log.folder)


def _recover_producers(log: Log, names: list[str], now_ms: int) -> None:
    """The newest snapshot that is whole, then the batches behind it."""
    offset = log.start_offset
    for base in reversed(base_offsets(names, PRODUCERS)):
        if base > log.next_offset:
            continue
        file = log.disk.open(f"{log.folder}/{file_name(base, PRODUCERS)}")
        table = ProducerTable(log.limits.producers_max)
        found = decode_snapshot(file.read(0, file.size()), table)
        file.close()
        if found == base:
            log.producers, offset = table, base
            break
    _restore_transactions(log)
    for segment in log.segments:
        if segment is not log.active and segment.next_offset <= offset:
            continue
        position, first = segment.index.floor(max(offset, segment.base_offset))
        for piece in walk(segment.file, position, segment.end, first, verify=False):
            batch = _as_written(segment, piece) if isinstance(piece, Damage) else piece
            if batch is not None and batch.header.producer_id >= 0 and batch.header.base_offset >= offset:
                _replay(log, segment, batch, now_ms)
    log.settle()


def _as_written(segment: Segment, damage: Damage) -> Whole | None:
    """A batch that cannot be served but still tells what its producer sent, so that a repeat of it is known."""
    header = intact_at(segment.file, damage)
    return Whole(damage.position, header) if header is not None and not is_marker(header) else None


def _restore_transactions(log: Log) -> None:
    """Those that the snapshot says are open."""
    firsts = sorted(p.first_offset for p in log.producers.known.values() if p.first_offset >= 0)
    for offset in firsts:
        log.transactions.begin(_locate(log, offset))
    log.transactions.commit()


def _locate(log: Log, offset: int) -> Point:
    """Where the batch that begins with `offset` stands; where the log begins if it is gone."""
    segment = log.segment_for(offset)
    position, first = segment.index.floor(offset)
    for batch in walk(segment.file, position, segment.end, first, verify=False):
        if not isinstance(batch, Damage) and batch.header.next_offset > offset:
            return Point(offset, segment, batch.position)
    return Point(offset, segment, segment.end)


def _replay(log: Log, segment: Segment, batch: Whole, now_ms: int) -> None:
    header = batch.header
    if not is_marker(header):
        replay_batch(log, header, Point(header.base_offset, segment, batch.position), now_ms)
    elif (marker := segment.marker_at(batch)) is not None:
        replay_marker(log, header.producer_id, header.producer_epoch, marker, header.base_offset, now_ms)
    log.producers.commit()
    log.transactions.commit()  # the index has its aborted ranges already
