"""An index of one segment: where to start reading for an offset or a time, what was aborted. Made again at will."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from crc32c import crc32c

from penstock.queue.log.aborted_ranges import Aborted

INTERVAL_BYTES = 64 * 1024
_HEAD = Struct(">IIIqqqq")
_MAGIC = 0x50534959


class SparseIndex:
    """Every 64 KiB of log an entry: offset, position, largest timestamp before it."""

    __slots__ = (
        "aborted",
        "covered",
        "max_timestamp",
        "max_timestamp_position",
        "next_offset",
        "offsets",
        "positions",
        "stamps",
    )

    def __init__(self, base_offset: int) -> None:
        self.offsets = array("q", [base_offset])
        self.positions = array("q", [0])
        self.stamps = array("q", [-1])
        self.aborted: list[Aborted] = []
        self.covered = 0  # log bytes this index has seen
        self.next_offset = base_offset
        self.max_timestamp = -1
        self.max_timestamp_position = 0

    def extend(self, position: int, placed: list[tuple[int, int, int, int]]) -> int:
        """Take in batches (offset, size, next offset, largest timestamp) written from `position` on; where they end."""
        indexed = self.positions[-1] + INTERVAL_BYTES
        newest = self.max_timestamp
        for offset, size, _, stamp in placed:
            if position >= indexed:
                self.offsets.append(offset)
                self.positions.append(position)
                self.stamps.append(newest)
                indexed = position + INTERVAL_BYTES
            if stamp > newest:
                newest = stamp
                self.max_timestamp_position = position
            position += size
        self.max_timestamp = newest
        self.covered = position
        self.next_offset = placed[-1][2]
        return position

    def floor(self, offset: int) -> tuple[int, int]:
        """The last entry (position, offset) at or before `offset`."""
        at = max(bisect_right(self.offsets, offset) - 1, 0)
        return self.positions[at], self.offsets[at]

    def after(self, offset: int) -> int:
        """The position of the first entry behind `offset`, or where the log ends."""
        at = bisect_right(self.offsets, offset)
        return self.positions[at] if at < len(self.positions) else self.covered

    def floor_time(self, timestamp: int) -> tuple[int, int]:
        """The last entry (position, offset) with no batch before it that reaches `timestamp`."""
        at = max(bisect_left(self.stamps, timestamp) - 1, 0)
        return self.positions[at], self.offsets[at]


def encode_index(index: SparseIndex) -> bytes:
    aborted = array("q", [number for one in index.aborted for number in one])
    columns = b"".join(_big_endian(column) for column in (index.offsets, index.positions, index.stamps, aborted))
    head = _HEAD.pack(
        _MAGIC,
        len(index.offsets),
        len(index.aborted),
        index.covered,
        index.next_offset,
        index.max_timestamp,
        index.max_timestamp_position,
    )
    body = head + columns
    return body + crc32c(body).to_bytes(4, "big")


def decode_index(data: bytes, base_offset: int) -> SparseIndex | None:
    """The index as saved, or None when it is damaged or another segment's."""
    if len(data) < _HEAD.size + 4 or crc32c(data[:-4]) != int.from_bytes(data[-4:], "big"):
        return None
    magic, count, aborted, covered, next_offset, max_timestamp, max_position = _HEAD.unpack_from(data)
    if magic != _MAGIC or count < 1 or len(data) != _HEAD.size + 24 * count + 32 * aborted + 4:
        return None
    numbers = array("q")
    numbers.frombytes(data[_HEAD.size : -4])
    numbers.byteswap()
    index = SparseIndex(base_offset)
    index.offsets, index.positions, index.stamps = (numbers[count * n : count * (n + 1)] for n in range(3))
    if index.offsets[0] != base_offset:
        return None
    rows = iter(numbers[3 * count :])
    index.aborted = [Aborted(*row) for row in zip(rows, rows, rows, rows, strict=True)]
    index.covered, index.next_offset = covered, next_offset
    index.max_timestamp, index.max_timestamp_position = max_timestamp, max_position
    return index


def _big_endian(column: array[int]) -> bytes:
    swapped = array("q", column)
    swapped.byteswap()
    return swapped.tobytes()
