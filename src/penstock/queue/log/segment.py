"""One segment of a partition: a file of batches and its sparse index."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from penstock.errors import PeerError
from penstock.kafka.records.batch import crc_matches
from penstock.kafka.records.marker import Marker, decode_marker, is_marker
from penstock.ports import Buffer, Disk, File
from penstock.queue.log.aborted_ranges import Aborted
from penstock.queue.log.index import SparseIndex, decode_index, encode_index
from penstock.queue.log.layout import INDEX, LOG, file_name
from penstock.queue.log.scan import Damage, Whole, walk
from penstock.queue.log.small_file import save_file

# A sync of bytes that the file already had takes half as long as one of bytes that make it longer: the file system
# has nothing to write down of its own (ADR 10). So small groups are written into zeros that an earlier one has left,
# and pay for them once in a while; for large ones it would be the same work twice.
AHEAD_BYTES = 256 * 1024
_SMALL_BYTES = AHEAD_BYTES // 8
_PAGE_BYTES = 4096
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ZEROS = memoryview(bytes(AHEAD_BYTES))


class Segment:
    """`end` is where the next batch goes; `next_offset` is its offset."""

    __slots__ = ("_ahead", "_disk", "_file", "_folder", "_index", "base_offset", "damages", "end")

    def __init__(self, disk: Disk, folder: str, base_offset: int, end: int) -> None:
        self._disk = disk
        self._folder = folder
        self.base_offset = base_offset
        self.end = end
        self.damages: list[Damage] = []
        self._ahead = end  # up to here the file is long enough
        self._file: File | None = None
        self._index: SparseIndex | None = None

    @classmethod
    def create(cls, disk: Disk, folder: str, base_offset: int) -> Segment:
        """A new, empty segment; its name is durable after a sync of the folder."""
        segment = cls(disk, folder, base_offset, 0)
        disk.remove(segment.index_path)  # of a segment that a power cut took
        segment._file = disk.create(segment.path)
        segment._index = SparseIndex(base_offset)
        return segment

    @property
    def path(self) -> str:
        return f"{self._folder}/{file_name(self.base_offset, LOG)}"

    @property
    def index_path(self) -> str:
        return f"{self._folder}/{file_name(self.base_offset, INDEX)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    @property
    def index(self) -> SparseIndex:
        """The index, read or rebuilt from the log when first asked for."""
        if self._index is None:
            self._index = self._load_index()
        return self._index

    @property
    def next_offset(self) -> int:
        return self.index.next_offset

    def write(self, chunks: Sequence[Buffer], size: int, *, is_synced: bool) -> None:
        """Write a group of `size` bytes at the end, which the caller moves on; zeros behind it if it will be synced."""
        end = self.end + size
        if is_synced and end > self._ahead and size <= _SMALL_BYTES:
            # Never more than the segment holds: a partition of a few records stays small.
            ahead = (end + min(end, AHEAD_BYTES)) // _PAGE_BYTES * _PAGE_BYTES
            if ahead > end:
                self._ahead = ahead
                try:
                    self.file.write(self.end, [*chunks, _ZEROS[: ahead - end]])
                    return
                except OSError as error:
                    if error.errno not in _FULL:
                        raise  # else there may be room for the group alone
        self.file.write(self.end, chunks)

    def trim(self) -> None:
        """Cut off whatever stands behind the end."""
        if self.file.size() > self.end:
            self.file.truncate(self.end)
        self._ahead = self.end

    @property
    def is_ahead(self) -> bool:
        """Whether the file is longer than what is in it."""
        return self._ahead > self.end

    def rebuild_index(self) -> None:
        """Distrust the index: make it again from the log."""
        self._index = SparseIndex(self.base_offset)
        self._extend_index(self._index)

    def save_index(self) -> None:
        """Keep the index for the next start; it can always be rebuilt, so nothing waits for it."""
        save_file(self._disk, self.index_path, encode_index(self.index))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        self.close()
        self._disk.remove(self.index_path)  # first: if the other fails, the segment is still whole
        self._disk.remove(self.path)

    def _load_index(self) -> SparseIndex:
        index = None
        if self._disk.exists(self.index_path):
            file = self._disk.open(self.index_path)
            index = decode_index(file.read(0, file.size()), self.base_offset)
            file.close()
        if index is not None and index.covered > self.end:
            # Of a tail that is gone: must not be found again when the log has grown past it.
            self._disk.remove(self.index_path)
            self._disk.sync_folder(self._folder)
            index = None
        if index is None:
            index = SparseIndex(self.base_offset)
        self._extend_index(index)
        return index

    def _extend_index(self, index: SparseIndex) -> None:
        for found in walk(self.file, index.covered, self.end, index.next_offset, verify=False):
            if isinstance(found, Damage):
                self.note_damage(found)
                continue
            position, header = found
            index.extend(position, [(header.base_offset, header.size, header.next_offset, header.max_timestamp)])
            marker = self.marker_at(found) if is_marker(header) else None
            if marker is not None and marker.first_offset >= 0:
                offsets = (marker.first_offset, header.base_offset, marker.stable_offset)
                index.aborted.append(Aborted(header.producer_id, *offsets))

    def marker_at(self, batch: Whole) -> Marker | None:
        """What the marker in this batch says, or None if it is damaged."""
        position, header = batch
        data = self.file.read(position, header.size)
        try:
            if crc_matches(data, 0, header):
                return decode_marker(data)
        except PeerError:
            pass
        end, following = position + header.size, header.next_offset
        self.note_damage(Damage(position, end, header.base_offset, following, "the marker is damaged"))
        return None

    def note_damage(self, damage: Damage) -> None:
        """Remember a damaged place once."""
        if all(known.position != damage.position for known in self.damages):
            self.damages.append(damage)
