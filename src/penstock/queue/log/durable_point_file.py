"""Where a partition's witness is written: of three slots, one that is durable is never written over."""

from __future__ import annotations

from penstock.ports import Disk, File
from penstock.queue.log.durable_point import FILE_SIZE, SLOT_POSITIONS, SLOTS, DurablePoint, encode_durable_point
from penstock.queue.log.layout import WITNESS
from penstock.queue.log.point import Point


class DurablePointFile:
    """Whatever a power cut tears, a witness that was durable for certain is left.

    It never syncs: who does tells it that a sync begins, and how it ended.
    """

    __slots__ = ("_disk", "_file", "_folder", "_is_syncing", "_safe", "_tried", "is_dirty", "is_made", "last")

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._file: File | None = None
        self.is_made = False
        self.last = DurablePoint(0, 0, 0, 0, 0)
        self.is_dirty = False  # written since a sync of it began
        self._safe: int | None = None  # durable for certain; None: the last one is with the first group
        self._tried: int | None = None  # the last one of which a sync began: durable perhaps
        self._is_syncing = False

    @property
    def file(self) -> File:
        """Made with its full size, so that it cannot run out of space; a sync of the folder makes its name durable."""
        if self._file is None:
            self._file = self._disk.create(f"{self._folder}/{WITNESS}")
            self.is_made = True
            self._file.write(0, (bytes(FILE_SIZE),))
        return self._file

    def recover_to(self, found: DurablePoint | None, file: File | None) -> None:
        """Take over what recovery found."""
        self.last = found or self.last
        if file is not None:
            self._file, self.is_made = file, True
            # Pages whose sync failed before the restart count as clean; those written again do not.
            file.write(0, (file.read(0, FILE_SIZE).ljust(FILE_SIZE, b"\0"),))

    @property
    def unsettled(self) -> list[File]:
        """What must be synced before a write: which of those that recovery found is durable is not known."""
        return [self.file] if self._safe is None and self.last.generation >= SLOTS else []

    def write(self, durable: Point, reserved: int) -> None:
        """Write the durable point, not synced; until a sync of another has ended well, the durable one is kept."""
        generation = self.last.generation
        if not self.is_dirty:
            safe = self._safe = generation if self._safe is None else self._safe
            generation = next_generation(generation, safe, self._tried or safe)
        witness = DurablePoint(generation, durable.offset, durable.segment.base_offset, durable.position, reserved)
        self.file.write(SLOT_POSITIONS[generation % SLOTS], (encode_durable_point(witness),))
        self.last = witness
        self.is_dirty = True

    def begin_sync(self) -> File | None:
        """The file if it should be synced by now."""
        if not self.is_dirty or self._is_syncing:
            return None
        self.is_dirty, self._is_syncing = False, True
        self._tried = self.last.generation
        return self._file

    def end_sync(self, is_durable: bool) -> None:
        """That sync has ended, well or not."""
        if is_durable:
            self._safe = max(self._safe or 0, self._tried or 0)
        self._is_syncing = False

    def leave_to_group(self) -> None:
        """The last one is synced with the next group of records."""
        self.is_dirty = False
        self._safe = None

    def on_proven(self) -> None:
        """The last one was synced outside of the hot path."""
        self.is_dirty = False
        self._safe = self.last.generation


def next_generation(last: int, *kept: int) -> int:
    """The generation to write after `last`: the first whose slot is that of none in `kept`."""
    slots = [generation % SLOTS for generation in kept]
    while last % SLOTS in slots:
        last += 1
    return last
