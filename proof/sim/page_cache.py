"""What of the files of a fake disk is in memory; the rest is read from the medium, and whoever reads it waits."""

from __future__ import annotations

from random import Random
from typing import NamedTuple
from weakref import WeakKeyDictionary

from proof.sim.inode import Inode

PAGE = 64


class ColdRead(NamedTuple):
    """A read that had to wait for the medium."""

    path: str
    cold_bytes: int


class Pages:
    """Knows what is not in memory; whatever is written or read is, from then on."""

    def __init__(self) -> None:
        self._absent: WeakKeyDictionary[Inode, set[int]] = WeakKeyDictionary()
        self.cold_reads: list[ColdRead] = []
        self.told_absent: set[tuple[str, int, int]] = set()
        self.used: set[Inode] = set()  # so lately that others leave the memory first

    def are_at_hand(self, path: str, inode: Inode, position: int, length: int) -> bool:
        self.used.add(inode)
        absent = self._absent.get(inode)
        if not absent or not any(page in absent for page in _pages(inode, position, length)):
            return True
        self.told_absent.add((path, position, length))
        return False

    def bring(self, inode: Inode, position: int, length: int) -> int:
        """From here on it is in memory; returns how many bytes were not."""
        absent = self._absent.get(inode)
        if not absent:
            return 0
        cold = 0
        for page in _pages(inode, position, length):
            if page in absent:
                absent.discard(page)
                cold += min((page + 1) * PAGE, position + length) - max(page * PAGE, position)
        return cold

    def forget(self, inode: Inode, chance: Random | None = None) -> None:
        """All of a file leaves the memory, or a part of it if it was not used lately."""
        if chance is not None and inode in self.used:
            return
        last = len(inode.data) // PAGE
        first = 0
        if chance is not None:
            first = chance.randint(0, last)
            last = chance.randint(first, last)
        self._absent.setdefault(inode, set()).update(range(first, last + 1))


def _pages(inode: Inode, position: int, length: int) -> range:
    end = min(position + length, len(inode.data))
    return range(position // PAGE, (end + PAGE - 1) // PAGE)
