"""The batches of a partition as they stand on the fake disk, read without the code under test."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from penstock.kafka.records.batch import HEADER, HEADER_SIZE, MAGIC, BatchHeader, crc_matches, decode_header
from penstock.queue.log.durable_point import SLOT_POSITIONS, SLOT_SIZE, DurablePoint, decode_durable_point, decode_slot
from penstock.queue.log.layout import LOG, WITNESS
from proof.sim.disk import FakeDisk
from proof.sim.inode import Folder, Inode


class Stored(NamedTuple):
    """One whole batch in a file."""

    header: BatchHeader
    payload: bytes
    position: int
    file: str


def raw_batch(stored: Stored) -> bytes:
    return HEADER.pack(*stored.header) + stored.payload


Batches = dict[int, Stored]
Files = WeakKeyDictionary[Inode, tuple[int, Batches]]


class Image(NamedTuple):
    """A partition as it stood when its folder had this stamp."""

    folder: Folder
    stamp: int
    batches: Batches
    end: int


class Imager:
    """Reads partitions, and remembers what it read until it changes."""

    def __init__(self, disk: FakeDisk) -> None:
        self._disk = disk
        self._durable: dict[str, Image] = {}
        self._written: dict[str, Image] = {}
        self._durable_files: Files = WeakKeyDictionary()
        self._written_files: Files = WeakKeyDictionary()

    def durable(self, path: str) -> Batches:
        """What a power cut at this moment could not take away."""
        image = self._durable_image(path)
        return image.batches if image is not None else {}

    def durable_end(self, path: str) -> int:
        """The offset behind the last durable batch."""
        image = self._durable_image(path)
        return image.end if image is not None else 0

    def written(self, path: str) -> Batches:
        """What the running node would read; the same object as long as nothing has changed."""
        if not self._disk.exists(path):
            return {}
        folder = self._disk.folder(path)
        known = self._written.get(path)
        if known is None or known.folder is not folder or known.stamp != folder.stamp:
            logs = _logs(folder.names)
            parts = [_cached(self._written_files, inode, inode.version, inode.data, name) for name, inode in logs]
            known = self._written[path] = _joined(folder, logs, parts, known)
        return known.batches

    def _durable_image(self, path: str) -> Image | None:
        folder = self._disk.durable_folder(path)
        if folder is None:
            return None
        known = self._durable.get(path)
        if known is None or known.folder is not folder or known.stamp != folder.stamp:
            logs = _logs(folder.durable_names)
            files = self._durable_files
            parts = [_cached(files, inode, inode.durable_version, inode.durable, name) for name, inode in logs]
            known = self._durable[path] = _joined(folder, logs, parts, known)
        return known

    def witness(self, path: str) -> DurablePoint | None:
        """The witness as a restart without a power cut would find it."""
        node = self._disk.folder(path).names.get(WITNESS) if self._disk.exists(path) else None
        return decode_durable_point(bytes(node.data)) if isinstance(node, Inode) else None

    def has_certain_witness(self, path: str) -> bool:
        """Whether a power cut at this moment leaves a witness, whatever it does."""
        folder = self._disk.durable_folder(path)
        node = folder.durable_names.get(WITNESS) if folder is not None else None
        if not isinstance(node, Inode):
            return False
        durable = bytes(node.durable)
        slots = [at for at in SLOT_POSITIONS if decode_slot(durable[at : at + SLOT_SIZE]) is not None]
        return any(node.is_certain(at, SLOT_SIZE) for at in slots)


def _joined(folder: Folder, logs: list[tuple[str, Inode]], parts: list[Batches], before: Image | None) -> Image:
    found: Batches = {}
    for part in parts:
        found.update(part)
    if before is not None and before.batches == found:
        found = before.batches
    begun = int(logs[-1][0].removesuffix(LOG)) if logs else 0
    end = max(begun, found[max(found)].header.next_offset if found else 0)
    return Image(folder, folder.stamp, found, end)


def _logs(names: dict[str, Inode | Folder]) -> list[tuple[str, Inode]]:
    return [(n, node) for n, node in sorted(names.items()) if n.endswith(LOG) and isinstance(node, Inode)]


def _cached(cache: Files, inode: Inode, version: int, data: bytearray, name: str) -> Batches:
    known = cache.get(inode)
    if known is None or known[0] != version:
        known = cache[inode] = (version, _batches(bytes(data), name))
    return known[1]


def _batches(data: bytes, name: str) -> Batches:
    found: Batches = {}
    at = 0
    due = int(name.removesuffix(LOG))
    while at + HEADER_SIZE <= len(data):
        header = decode_header(data, at)
        size = header.size
        if header.magic != MAGIC or size < HEADER_SIZE or at + size > len(data) or header.base_offset != due:
            break
        if not crc_matches(data, at, header):
            break
        found[header.base_offset] = Stored(header, data[at + HEADER_SIZE : at + size], at, name)
        at += size
        due = header.next_offset
    return found
