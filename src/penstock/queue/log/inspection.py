"""Look at a stored partition without changing it: what is damaged, what is missing, what the next start will do."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from penstock.ports import Disk, File
from penstock.queue.log.durable_point import DurablePoint, decode_durable_point
from penstock.queue.log.index import SparseIndex, decode_index
from penstock.queue.log.layout import INDEX, LOG, PRODUCERS, TORN, WITNESS, base_offsets, file_name
from penstock.queue.log.producer_snapshot import decode_snapshot
from penstock.queue.log.producers import ProducerTable
from penstock.queue.log.scan import Damage, is_zero, walk


class Kind(Enum):
    """What was found; the names are stable, programs rely on them."""

    DAMAGED = "damaged"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    KEPT_ASIDE = "kept-aside"
    REBUILT = "rebuilt"
    UNSYNCED = "unsynced"


_RESTORE_ALL = (
    "restore the files from a backup; until then the broker neither reads nor writes this partition, since new records "
    "would get offsets that were given before; without a backup, delete the topic"
)
_RESTORE = "restore the file from a backup; what is there stays readable, and new records get offsets behind the gap"
_REBUILT = "nothing to do: it is made again from the log, which alone is believed"
_REMADE = "remove it while no broker runs: it is made again from the log, which alone is believed"
_PADDING = "zero bytes that no batch was written to"
_HARM = (Kind.DAMAGED, Kind.MISSING, Kind.UNREADABLE)


class Finding(NamedTuple):
    """One thing worth telling: bytes [position, end) of `file`, offsets from `offset` up to `next_offset`."""

    kind: Kind
    file: str
    what: str
    advice: str
    position: int | None = None
    end: int | None = None
    offset: int | None = None
    next_offset: int | None = None

    @property
    def is_damage(self) -> bool:
        """Whether something that was acknowledged may be lost."""
        return self.kind in _HARM


class _Scanned(NamedTuple):
    """One segment as it was read."""

    base_offset: int
    path: str
    size: int
    damages: list[Damage]
    next_offset: int
    index_fault: Finding | None


def inspect_partition(disk: Disk, folder: str) -> list[Finding]:
    """Everything worth telling about the partition in `folder`, by reading all of it; nothing is written."""
    # The witness first: a running broker moves it on while the segments are read.
    witness, findings = _witness(disk, folder)
    names = disk.names(folder)
    segments = []
    for base in base_offsets(names, LOG):
        path = f"{folder}/{file_name(base, LOG)}"
        try:
            segments.append(_scan(disk, folder, base))
        except FileNotFoundError:
            continue  # retention of a running broker was faster
        except OSError as error:
            findings.append(_unreadable(path, error))
    findings += _judge(segments, witness, folder)
    findings += [segment.index_fault for segment in segments if segment.index_fault]
    findings += _snapshots(disk, folder, names)
    findings += _kept_aside(disk, folder, names)
    return findings


def _witness(disk: Disk, folder: str) -> tuple[DurablePoint | None, list[Finding]]:
    path = f"{folder}/{WITNESS}"
    data = _contents(disk, path)
    if data is None:
        return None, []
    witness = decode_durable_point(data)
    if witness is None and data.strip(b"\0"):
        what = "the record of what is durable is damaged"
        advice = "nothing to do: the next start checks the whole partition and writes it anew"
        return None, [Finding(Kind.REBUILT, path, what, advice)]
    return witness, []


def _scan(disk: Disk, folder: str, base_offset: int) -> _Scanned:
    index_path = f"{folder}/{file_name(base_offset, INDEX)}"
    saved = _contents(disk, index_path)
    index = decode_index(saved, base_offset) if saved is not None else SparseIndex(base_offset)
    # The entry for position 0 stands in every index, also in that of an empty segment.
    astray = dict(zip(index.positions[1:], index.offsets[1:], strict=True)) if index else {}
    file = disk.open(f"{folder}/{file_name(base_offset, LOG)}")
    try:
        size = file.size()
        damages, next_offset = [], base_offset
        for found in walk(file, 0, size, base_offset, verify=True):
            if isinstance(found, Damage):
                damages.append(_without_padding(file, found))
                continue
            next_offset = found.header.next_offset
            if astray.get(found.position) == found.header.base_offset:
                del astray[found.position]
    finally:
        file.close()
    fault = None
    if index is None:
        fault = Finding(Kind.REBUILT, index_path, "the index is damaged", _REBUILT)
    elif index.covered > size or (astray and not damages):
        fault = Finding(Kind.REBUILT, index_path, "the index does not agree with the log", _REMADE)
    return _Scanned(base_offset, file.path, size, damages, next_offset, fault)


def _without_padding(file: File, damage: Damage) -> Damage:
    is_padding = damage.next_offset is None and is_zero(file, damage.position, damage.end)
    return damage._replace(reason=_PADDING) if is_padding else damage


def _judge(segments: list[_Scanned], witness: DurablePoint | None, folder: str) -> Iterator[Finding]:
    """Damage and gaps, told apart by the durable point exactly as recovery does."""
    if not segments:
        if witness is not None and witness.offset > 0:
            what = f"records up to offset {witness.offset} were acknowledged, but there is no log file"
            yield Finding(Kind.MISSING, folder, what, _RESTORE_ALL, offset=0, next_offset=witness.offset)
        return
    proven = witness is not None and any(_holds(segment, witness) for segment in segments)
    due: int | None = None
    for number, segment in enumerate(segments):
        after = segments[number + 1] if number + 1 < len(segments) else None
        if due is not None and segment.base_offset != due:
            yield _gap(segment, due, tail=proven and _is_behind(segment, 0, witness))
        for damage in segment.damages:
            unknown = witness is None and damage.next_offset is None and after is None
            tail = unknown or (proven and _is_behind(segment, damage.position, witness))
            if tail and after is None and damage.reason == _PADDING:
                continue  # the log is written into zeros that stand there already
            if damage.next_offset is None and after is not None:
                damage = damage._replace(next_offset=after.base_offset)
            yield _cut_at_start(segment, damage, proven) if tail else _damaged(segment, damage, witness)
        ends_damaged = bool(segment.damages) and segment.damages[-1].next_offset is None
        due = None if ends_damaged else segment.next_offset
        if proven and witness is not None:
            yield from _behind_durable(segment, witness)
    end = segments[-1].next_offset
    if witness is not None and witness.offset > end and not segments[-1].damages:
        what = f"records up to offset {witness.offset} were acknowledged, but the log ends at {end}"
        yield Finding(Kind.MISSING, segments[-1].path, what, _RESTORE, segments[-1].size, None, end, witness.offset)


def _holds(segment: _Scanned, witness: DurablePoint) -> bool:
    return segment.base_offset == witness.segment and segment.size >= witness.position


def _is_behind(segment: _Scanned, position: int, witness: DurablePoint | None) -> bool:
    """Whether a place lies at or behind the durable point: only a memory topic may have acknowledged it."""
    return witness is not None and (segment.base_offset, position) >= (witness.segment, witness.position)


def _gap(segment: _Scanned, due: int, *, tail: bool) -> Finding:
    if tail:
        what = f"a segment that does not follow offset {due}, behind everything known to be on disk"
        advice = f"nothing to do: the next start sets it aside as *{TORN}"
        return Finding(Kind.UNSYNCED, segment.path, what, advice, 0, segment.size, due, segment.base_offset)
    what = f"offsets {due} to {segment.base_offset - 1} are missing before this file"
    return Finding(Kind.MISSING, segment.path, what, _RESTORE, 0, 0, due, segment.base_offset)


def _damaged(segment: _Scanned, damage: Damage, witness: DurablePoint | None) -> Finding:
    behind = damage.next_offset
    if behind is None and witness is not None and witness.offset > damage.offset:
        behind = witness.offset
    lost = f"offsets {damage.offset} to {behind - 1}" if behind is not None else f"from offset {damage.offset} on"
    onward = f"can read on from offset {behind}" if behind is not None else "find new records behind it"
    advice = f"restore these bytes from a backup; until then readers get an error there, and {onward}"
    what = f"{damage.end - damage.position} bytes are no whole batch ({damage.reason}), {lost}"
    return Finding(Kind.DAMAGED, segment.path, what, advice, damage.position, damage.end, damage.offset, behind)


def _cut_at_start(segment: _Scanned, damage: Damage, proven: bool) -> Finding:
    known = "behind everything known to be on disk" if proven else "with nothing behind them"
    what = f"{damage.end - damage.position} bytes at the end are no whole batch ({damage.reason}), {known}"
    advice = f"nothing to do: the next start cuts them off, and keeps what is not zero beside the log as *{TORN}"
    return Finding(
        Kind.UNSYNCED, segment.path, what, advice, damage.position, damage.end, damage.offset, damage.next_offset
    )


def _behind_durable(segment: _Scanned, witness: DurablePoint) -> Iterator[Finding]:
    """Whole batches behind the durable point: written, not synced; only a memory topic has acknowledged them."""
    if segment.base_offset < witness.segment:
        return
    begin = witness.position if segment.base_offset == witness.segment else 0
    offset = witness.offset if segment.base_offset == witness.segment else segment.base_offset
    torn = next((damage for damage in segment.damages if damage.position >= begin), None)
    end, next_offset = (torn.position, torn.offset) if torn else (segment.size, segment.next_offset)
    if end > begin:
        what = f"{end - begin} bytes of whole batches behind everything known to be on disk"
        advice = "nothing to do: the next start keeps them and syncs them"
        yield Finding(Kind.UNSYNCED, segment.path, what, advice, begin, end, offset, next_offset)


def _snapshots(disk: Disk, folder: str, names: list[str]) -> Iterator[Finding]:
    for base in base_offsets(names, PRODUCERS):
        path = f"{folder}/{file_name(base, PRODUCERS)}"
        data = _contents(disk, path)
        if data is not None and decode_snapshot(data, ProducerTable(1)) != base:
            yield Finding(Kind.REBUILT, path, "the snapshot of producers is damaged", _REBUILT)


def _kept_aside(disk: Disk, folder: str, names: list[str]) -> Iterator[Finding]:
    for name in names:
        if name.endswith(TORN):
            path = f"{folder}/{name}"
            size = len(_contents(disk, path) or b"")
            what = f"{size} bytes that a start found behind everything known to be on disk, and kept"
            yield Finding(Kind.KEPT_ASIDE, path, what, "look into it if a producer misses records; else remove it")


def _contents(disk: Disk, path: str) -> bytes | None:
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _unreadable(path: str, error: OSError) -> Finding:
    advice = "look at the disk and its cables before anything else; restore the file from a backup"
    return Finding(Kind.UNREADABLE, path, f"the disk does not give it ({error})", advice)
