"""Walk the batches of a segment file; where one is damaged, say so and find the next whole one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.kafka.records.batch import (
    HEADER_SIZE,
    LEADER_EPOCH,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    crc_matches,
    decode_header,
    is_plausible,
)
from penstock.ports import File

WINDOW_BYTES = 256 * 1024
PIECE_BYTES_MAX = 4 * 1024 * 1024
_MAGIC_BYTE = bytes([MAGIC])
_MAGIC_AT = 16


class Whole(NamedTuple):
    """A batch that stands where it should."""

    position: int
    header: BatchHeader


class Damage(NamedTuple):
    """Bytes that are no batch; `next_offset` is the first offset behind them, None when nothing whole follows."""

    position: int
    end: int
    offset: int
    next_offset: int | None
    reason: str


class Window:
    """Reads a file in pieces that grow while each follows closely behind the one before."""

    def __init__(self, file: File, end: int, bytes_min: int = WINDOW_BYTES, bytes_max: int = PIECE_BYTES_MAX) -> None:
        self._file = file
        self._end = end
        self._bytes_min = bytes_min
        self._bytes_max = bytes_max
        self._piece = bytes_min
        self._start = 0
        self._data = b""

    def at(self, position: int, length: int) -> tuple[bytes, int]:
        """A buffer and where in it `position` is; `length` bytes follow there unless the file ends before."""
        inside = position - self._start
        if inside < 0 or inside + length > len(self._data):
            # The kernel reads nothing ahead (queue/server/disk.py): the disk is kept busy by who asks for much at once.
            is_next = 0 <= inside < 2 * len(self._data)
            self._piece = min(2 * self._piece, self._bytes_max) if is_next else self._bytes_min
            want = min(max(length, self._piece), self._end - position)
            self._data = self._file.read(position, want)
            self._start, inside = position, 0
        return self._data, inside


def walk(file: File, start: int, end: int, next_offset: int, *, verify: bool) -> Iterator[Whole | Damage]:
    """Each batch in [start, end), the first of which has `next_offset`; `verify` computes checksums too."""
    window = Window(file, end)
    position = start
    while position < end:
        found = batch_at(window, position, end, next_offset, verify=verify)
        if not verify and isinstance(found, BatchHeader) and not _leads_on(window, position, end, found):
            # Its own size or offsets may be what is wrong.
            found = batch_at(window, position, end, next_offset, verify=True)
        if isinstance(found, BatchHeader):
            yield Whole(position, found)
            position += found.size
            next_offset = found.next_offset
            continue
        damage = _damage(window, position, end, next_offset, found)
        yield damage
        if damage.next_offset is None:
            return
        position, next_offset = damage.end, damage.next_offset


def batch_at(window: Window, position: int, end: int, next_offset: int, *, verify: bool) -> BatchHeader | str:
    """The header of the whole batch at `position`, or why there is none."""
    if end - position < HEADER_SIZE:
        return f"{end - position} bytes are too few for a batch"
    data, at = window.at(position, HEADER_SIZE)
    if len(data) - at < HEADER_SIZE:
        return "the file ends inside a batch header"
    header = decode_header(data, at)
    if fault := header_fault(header, next_offset):
        return fault
    if position + header.size > end:
        return f"the batch claims {header.size} bytes, {end - position} are there"
    if verify:
        data, at = window.at(position, header.size)
        if not crc_matches(data, at, header):
            return "the checksum does not match"
    return header


def header_fault(header: BatchHeader, next_offset: int) -> str | None:
    """What is wrong with a stored header; base offset and epoch are not under the checksum, so they are compared."""
    if header.magic != MAGIC:
        return f"no batch begins here (format byte {header.magic})"
    if header.base_offset != next_offset:
        return f"the batch claims offset {header.base_offset}, {next_offset} is due"
    if header.leader_epoch != LEADER_EPOCH:
        return f"the batch claims leader epoch {header.leader_epoch}"
    if header.length < HEADER_SIZE - LENGTH_OVERHEAD or header.last_delta < 0:
        return "the batch header contradicts itself"
    if header.record_count != header.last_delta + 1 and not header.is_control:
        return "the batch header contradicts itself"
    return None


def _leads_on(window: Window, position: int, end: int, header: BatchHeader) -> bool:
    """Whether the next batch, or the end, is just where this one says."""
    following = position + header.size
    return following == end or not isinstance(batch_at(window, following, end, header.next_offset, verify=False), str)


def is_zero(file: File, start: int, end: int) -> bool:
    """Whether the bytes in [start, end) are all zero: space that was set aside and never written."""
    for position in range(start, end, WINDOW_BYTES):
        if file.read(position, min(WINDOW_BYTES, end - position)).strip(b"\0"):
            return False
    return True


def intact_at(file: File, damage: Damage) -> BatchHeader | None:
    """The batch where `damage` begins if only what no checksum covers is wrong: its offset, or its epoch."""
    window = Window(file, damage.end)
    data, at = window.at(damage.position, HEADER_SIZE)
    if len(data) - at < HEADER_SIZE:
        return None
    header = decode_header(data, at)._replace(base_offset=damage.offset, leader_epoch=LEADER_EPOCH)
    if header_fault(header, damage.offset) or damage.position + header.size > damage.end:
        return None
    data, at = window.at(damage.position, header.size)
    return header if crc_matches(data, at, header) else None


def _damage(window: Window, position: int, end: int, next_offset: int, reason: str) -> Damage:
    """The damage at `position`, up to the next batch whose checksum is right."""
    claimed = batch_at(window, position, end, next_offset, verify=False)
    if isinstance(claimed, BatchHeader):
        # Look first where it says it ends: a value inside it may be a batch, too.
        following = position + claimed.size
        if not isinstance(batch_at(window, following, end, claimed.next_offset, verify=True), str):
            return Damage(position, following, next_offset, claimed.next_offset, reason)
    for candidate, header in _whole_behind(window, position, end, next_offset + 1):
        if _is_borne_out(window, candidate, end, header, next_offset + 1):
            return Damage(position, candidate, next_offset, header.base_offset, reason)
    return Damage(position, end, next_offset, None, reason)


def _whole_behind(window: Window, position: int, end: int, least: int) -> Iterator[tuple[int, BatchHeader]]:
    """Where each batch behind `position` begins whose checksum is right and whose offset is `least` or more."""
    candidate = position + 1
    while candidate + HEADER_SIZE <= end:
        data, at = window.at(candidate, HEADER_SIZE)
        hit = data.find(_MAGIC_BYTE, at + _MAGIC_AT)
        if hit < 0 or hit - _MAGIC_AT + HEADER_SIZE > len(data):
            step = (len(data) - at) - HEADER_SIZE + 1 if hit < 0 else hit - _MAGIC_AT - at
            candidate += max(step, 1)
            continue
        candidate += hit - _MAGIC_AT - at
        header = decode_header(data, hit - _MAGIC_AT)
        if is_plausible(header, least) and _checked(window, candidate, end) is not None:
            yield candidate, header
            candidate += header.size - 1
        candidate += 1


def _is_borne_out(window: Window, position: int, end: int, header: BatchHeader, least: int) -> bool:
    """Whether the batches behind one agree with its offset, which no checksum covers and nothing before it confirms."""
    second = _checked(window, position + header.size, end)
    if second is None:
        _, behind = next(_whole_behind(window, position + header.size, end, least), (end, None))
        return behind is None or behind.base_offset >= header.next_offset
    if second.base_offset == header.next_offset:
        return True
    third = _checked(window, position + header.size + second.size, end)
    return third is not None and third.base_offset == header.next_offset + second.last_delta + 1


def _checked(window: Window, position: int, end: int) -> BatchHeader | None:
    """The batch at `position` if its checksum is right, whatever its offset."""
    if end - position < HEADER_SIZE:
        return None
    data, at = window.at(position, HEADER_SIZE)
    header = decode_header(data, at)
    found = batch_at(window, position, end, header.base_offset, verify=True)
    return None if isinstance(found, str) else found
