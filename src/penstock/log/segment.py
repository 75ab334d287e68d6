"""One segment of a partition: a file of batches and its sparse index."""

from __future__ import annotations

from penstock.errors import PeerError
from penstock.log.aborted import Aborted
from penstock.log.index import SparseIndex, decode_index, encode_index
from penstock.log.layout import INDEX, LOG, file_name
from penstock.log.saving import save_file
from penstock.log.scan import Damage, Whole, walk
from penstock.ports import Disk, File
from penstock.records.batch import crc_matches
from penstock.records.marker import Marker, decode_marker, is_marker


class Segment:
    """`end` is where the next batch goes; `next_offset` is the one it would get."""

    __slots__ = ("_disk", "_file", "_folder", "_index", "base_offset", "damages", "end")

    def __init__(self, disk: Disk, folder: str, base_offset: int, end: int) -> None:
        self._disk = disk
        self._folder = folder
        self.base_offset = base_offset
        self.end = end
        self.damages: list[Damage] = []
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
