"""The batches of a partition as they stand on the fake disk, read without the code under test."""

from __future__ import annotations

import operator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from penstock.log.layout import LOG, WITNESS
from penstock.log.witness import Witness, decode_witness
from penstock.records.batch import HEADER_SIZE, MAGIC, BatchHeader, crc_matches, decode_header
from penstock.sim.disk import FakeDisk
from penstock.sim.inode import Folder, Inode


class Stored(NamedTuple):
    """One whole batch in a file."""

    header: BatchHeader
    payload: bytes
    position: int
    file: str


Batches = dict[int, Stored]
Joined = dict[str, tuple[list[Batches], Batches]]


class Imager:
    """Reads partitions, and remembers what it read until it changes."""

    def __init__(self, disk: FakeDisk) -> None:
        self._disk = disk
        self._durable: WeakKeyDictionary[Inode, tuple[int, Batches]] = WeakKeyDictionary()
        self._written: WeakKeyDictionary[Inode, tuple[int, Batches]] = WeakKeyDictionary()
        self._joined_durable: Joined = {}
        self._joined_written: Joined = {}

    def durable(self, path: str) -> Batches:
        """What a power cut at this moment could not take away."""
        folder = self._disk.durable_folder(path)
        logs = _logs(folder.durable_names if folder else {})
        parts = [_cached(self._durable, inode, inode.durable_version, inode.durable, name) for name, inode in logs]
        return _joined(self._joined_durable, path, parts)

    def durable_end(self, path: str) -> int:
        """The offset behind the last durable batch."""
        folder = self._disk.durable_folder(path)
        names = [name for name, _ in _logs(folder.durable_names if folder else {})]
        last = max(self.durable(path).values(), key=lambda stored: stored.header.base_offset, default=None)
        begun = int(names[-1].removesuffix(LOG)) if names else 0
        return max(begun, last.header.next_offset if last else 0)

    def written(self, path: str) -> Batches:
        """What the running node would read."""
        logs = _logs(self._disk.folder(path).names) if self._disk.exists(path) else []
        parts = [_cached(self._written, inode, inode.version, inode.data, name) for name, inode in logs]
        return _joined(self._joined_written, path, parts)

    def witness(self, path: str) -> Witness | None:
        """The witness as a restart without a power cut would find it."""
        node = self._disk.folder(path).names.get(WITNESS) if self._disk.exists(path) else None
        return decode_witness(bytes(node.data)) if isinstance(node, Inode) else None


def _joined(known: Joined, path: str, parts: list[Batches]) -> Batches:
    """The union; the same object as before if nothing has changed."""
    before = known.get(path)
    if before is not None and len(before[0]) == len(parts) and all(map(operator.is_, before[0], parts)):
        return before[1]
    found: Batches = {}
    for part in parts:
        found.update(part)
    known[path] = (parts, found)
    return found


def _logs(names: dict[str, Inode | Folder]) -> list[tuple[str, Inode]]:
    return [(n, node) for n, node in sorted(names.items()) if n.endswith(LOG) and isinstance(node, Inode)]


def _cached(
    cache: WeakKeyDictionary[Inode, tuple[int, Batches]], inode: Inode, version: int, data: bytearray, name: str
) -> Batches:
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
