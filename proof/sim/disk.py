"""A fake disk, as cruel as a real one: what is not synced may vanish, tear or survive out of order; calls may fail."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from random import Random

from penstock.ports import Buffer
from penstock.queue.log.layout import WITNESS
from proof.sim.inode import Folder, Inode, Mood
from proof.sim.page_cache import ColdRead, Pages

ANY_CALL = "any"
TAKES_SPACE = ("create", "write", "make_folder")


class Faults:
    """What goes wrong; everything is off until it is set."""

    def __init__(self) -> None:
        self.room: int | None = None  # bytes that still fit
        self.rates: dict[str, float] = {}  # how often a kind of call fails with EIO
        self.fail_at: int | None = None  # the number of the one call that fails
        self.fail_with = errno.EIO
        self.calls = 0
        self.raised = 0

    def calm_down(self) -> None:
        self.room = None
        self.rates = {}
        self.fail_at = None


class FakeFile:
    """A handle; once closed it opens its path again when used, like the real one."""

    def __init__(self, disk: FakeDisk, path: str, inode: Inode) -> None:
        self._disk = disk
        self._path = path
        self._inode: Inode | None = inode
        self._syncs = 0
        self._is_closing = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def inode(self) -> Inode:
        if self._inode is None:
            self._inode = self._disk.inode(self._path)
        return self._inode

    def size(self) -> int:
        self._disk.call("size", self._path)
        return len(self.inode.data)

    def write(self, position: int, chunks: Sequence[Buffer]) -> None:
        inode = self.inode
        data = b"".join(chunks)
        growth = max(0, position + len(data) - len(inode.data))
        taken = self._disk.take_room(growth)
        whole = len(data) - growth + taken
        try:
            self._disk.call("write", self._path)
        except OSError:
            whole = self._disk.chance.randrange(whole + 1)
            inode.write(position, data[:whole])
            raise
        if whole:
            inode.write(position, data[:whole])
            self._disk.pages.bring(inode, position, whole)
            self._disk.pages.used.add(inode)
        if taken < growth:
            self._disk.faults.raised += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)

    def read(self, position: int, length: int) -> bytes:
        self._disk.call("read", self._path)
        pages = self._disk.pages
        if cold := pages.bring(self.inode, position, length):
            pages.cold_reads.append(ColdRead(self._path, cold))
        return bytes(self.inode.data[position : position + length])

    def is_at_hand(self, position: int, length: int) -> bool:
        try:
            return self._disk.pages.are_at_hand(self._path, self.inode, position, length)
        except FileNotFoundError:
            return True  # whoever reads it will see

    def truncate(self, size: int) -> None:
        self._disk.call("truncate", self._path)
        self._disk.give_room(len(self.inode.data) - size)
        self.inode.truncate(size)

    def sync(self) -> None:
        self.end_sync(self.begin_sync())

    def begin_sync(self) -> int:
        """What is written from here on is not covered."""
        self._syncs += 1
        if self.inode in self._disk.failed and not self._path.endswith(WITNESS):
            self._disk.retried.append(self._path)
        return self.inode.begin_sync()

    def end_sync(self, up_to: int) -> None:
        """The sync ends here: well, or with OSError, and then never again."""
        inode = self.inode
        self.abandon_sync()
        try:
            self._disk.call("sync", self._path)
        except OSError:
            inode.fail_sync(up_to)
            self._disk.failed[inode] = self._path
            raise
        inode.end_sync(up_to)

    def abandon_sync(self) -> None:
        self._syncs -= 1
        if self._is_closing and self._syncs == 0:
            self._inode = None

    def close(self) -> None:
        self._is_closing = True
        if self._syncs == 0:
            self._inode = None


class FakeDisk:
    """A tree of files in memory. `chance` decides what a power cut and a failing write leave behind."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.root = Folder()
        self.faults = Faults()
        self.pages = Pages()
        self.failed: dict[Inode, str] = {}  # syncs that failed since the node started
        self.retried: list[str] = []  # files synced again after that

    def call(self, kind: str, path: str) -> None:
        """Count a call; raise if it is its turn to fail."""
        faults = self.faults
        if faults.fail_at is not None and (faults.fail_with == errno.EIO or kind in TAKES_SPACE):
            faults.calls += 1
            if faults.calls == faults.fail_at:
                faults.raised += 1
                raise OSError(faults.fail_with, os.strerror(faults.fail_with), path)
        if faults.rates:
            rate = faults.rates.get(kind) or faults.rates.get(ANY_CALL, 0.0)
            if rate and self.chance.random() < rate:
                faults.raised += 1
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def take_room(self, wanted: int) -> int:
        room = self.faults.room
        if room is None:
            return wanted
        taken = min(wanted, room)
        self.faults.room = room - taken
        return taken

    def give_room(self, size: int) -> None:
        if self.faults.room is not None:
            self.faults.room += max(size, 0)

    # The tree.

    def _node(self, path: str) -> Inode | Folder | None:
        node: Inode | Folder | None = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Folder):
                return None
            node = node.names.get(part)
        return node

    def _parent(self, path: str) -> tuple[Folder, str]:
        folder, _, name = path.rpartition("/")
        return self.folder(folder), name

    def folder(self, path: str) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def inode(self, path: str) -> Inode:
        node = self._node(path)
        if not isinstance(node, Inode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def durable_folder(self, path: str) -> Folder | None:
        """The folder that a power cut cannot take away, or None."""
        node: Inode | Folder | None = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Folder):
                return None
            node = node.durable_names.get(part)
        return node if isinstance(node, Folder) else None

    # The port.

    def open(self, path: str) -> FakeFile:
        self.call("open", path)
        return FakeFile(self, path, self.inode(path))

    def create(self, path: str) -> FakeFile:
        self.call("create", path)
        folder, name = self._parent(path)
        node = folder.names.get(name)
        if isinstance(node, Inode):
            self.give_room(len(node.data))
            node.truncate(0)
        else:
            if self.faults.room == 0:
                self.faults.raised += 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            node = Inode()
            folder.set(name, node)
        return FakeFile(self, path, node)

    def exists(self, path: str) -> bool:
        return self._node(path) is not None

    def names(self, folder: str) -> list[str]:
        self.call("names", folder)
        return sorted(self.folder(folder).names)

    def make_folder(self, path: str) -> None:
        self.call("make_folder", path)
        parent, name = self._parent(path)
        if name not in parent.names:
            parent.set(name, Folder())

    def remove(self, path: str) -> None:
        self.call("remove", path)
        node = self._node(path)
        if isinstance(node, Inode):
            self.give_room(len(node.data))
            folder, name = self._parent(path)
            folder.set(name, None)

    def remove_folder(self, path: str) -> None:
        node = self._node(path)
        if not isinstance(node, Folder):
            return
        for name in sorted(node.names):
            inner = f"{path}/{name}"
            if isinstance(node.names[name], Folder):
                self.remove_folder(inner)
            else:
                self.remove(inner)
        self.call("remove_folder", path)
        parent, name = self._parent(path)
        parent.set(name, None)

    def rename(self, old: str, new: str) -> None:
        self.call("rename", old)
        folder, old_name = self._parent(old)
        target, new_name = self._parent(new)
        if folder is not target:
            raise OSError(errno.EXDEV, "the simulated disk renames within a folder only", old)
        folder.set(new_name, self.inode(old), old=old_name)

    def sync_folder(self, path: str) -> None:
        folder = self.folder(path)
        self.end_sync_folder(path, folder, folder.begin_sync())

    def end_sync_folder(self, path: str, folder: Folder, up_to: int) -> None:
        # A failed sync of a folder leaves its changes waiting: file systems keep names in a journal, not in pages.
        self.call("sync_folder", path)
        folder.end_sync(up_to)

    # What happens to machines.

    def cut_power(self, mood: Mood) -> None:
        """Everything that was not synced is at the mercy of chance, and nothing is in memory."""
        self.root.cut_power(self.chance, mood)
        self.forget()

    def forget(self, chance: Random | None = None) -> None:
        """The memory is wanted for other things: all files leave it, or by chance some of some."""
        for inode in _inodes(self.root):
            if chance is None or chance.random() < 0.5:
                self.pages.forget(inode, chance)


def _inodes(folder: Folder) -> Iterator[Inode]:
    for name in sorted(folder.names):
        node = folder.names[name]
        if isinstance(node, Inode):
            yield node
        else:
            yield from _inodes(node)
