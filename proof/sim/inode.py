"""What a fake disk keeps of one file or folder: the durable part, and what is only written."""

from __future__ import annotations

from enum import Enum
from random import Random

SECTOR = 512


class Fate(Enum):
    """What has become of a change that was made in memory."""

    WRITTEN = "a sync makes it durable"
    LOST = "a sync of it failed: the page counts as clean, no later sync writes it"
    DURABLE = "it is on the disk, but a lost change stands before it"


class Mood(Enum):
    """What a power cut does with all that was not synced."""

    NOTHING = "all of it is gone"
    EVERYTHING = "all of it was just written back"
    MIXED = "each change is there, torn or gone, whatever its order"


class Edit:
    """One write, or one truncation (`data` is None) of a file."""

    __slots__ = ("data", "fate", "number", "position")

    def __init__(self, number: int, position: int, data: bytes | None) -> None:
        self.number = number
        self.position = position
        self.data = data
        self.fate = Fate.WRITTEN


class Inode:
    """A file: `data` is what a running machine sees, `durable` what survives a power cut for certain."""

    __slots__ = ("__weakref__", "_base", "_edits", "_last", "data", "durable_version", "home", "version")

    def __init__(self) -> None:
        self.data = bytearray()
        self._base = bytearray()
        self._edits: list[Edit] = []
        self._last = 0
        self.version = 0
        self.durable_version = 0
        self.home: Folder | None = None

    def _changed(self) -> None:
        if self.home is not None:
            self.home.stamp += 1

    @property
    def durable(self) -> bytearray:
        if not any(edit.fate is Fate.DURABLE for edit in self._edits):
            return self._base
        content = bytearray(self._base)
        for edit in self._edits:
            if edit.fate is Fate.DURABLE:
                _apply(content, edit.position, edit.data)
        return content

    def is_certain(self, position: int, length: int) -> bool:
        """Whether a power cut at this moment leaves this stretch as it is on the disk, whatever it does."""
        durable, end = self.durable, position + length
        for edit in reversed(self._edits):
            if edit.data is None:
                continue
            begin, stop = max(position, edit.position), min(end, edit.position + len(edit.data))
            if edit.fate is Fate.DURABLE and (begin, stop) == (position, end):
                return True  # whatever was before
            if begin < stop and edit.data[begin - edit.position : stop - edit.position] != durable[begin:stop]:
                return False
        return True

    def write(self, position: int, data: bytes) -> None:
        self._edit(position, data)

    def truncate(self, size: int) -> None:
        self._edit(size, None)

    def _edit(self, position: int, data: bytes | None) -> None:
        self._last += 1
        self.version += 1
        self._changed()
        _apply(self.data, position, data)
        self._edits.append(Edit(self._last, position, data))

    def begin_sync(self) -> int:
        """A sync covers what was written up to here, and promises nothing about what comes while it runs."""
        return self._last

    def end_sync(self, up_to: int) -> None:
        for edit in self._edits:
            if edit.number <= up_to and edit.fate is Fate.WRITTEN:
                edit.fate = Fate.DURABLE
        while self._edits and self._edits[0].fate is Fate.DURABLE:
            done = self._edits.pop(0)
            _apply(self._base, done.position, done.data)
        self.durable_version += 1
        self._changed()

    def fail_sync(self, up_to: int) -> None:
        for edit in self._edits:
            if edit.number <= up_to and edit.fate is Fate.WRITTEN:
                edit.fate = Fate.LOST

    def cut_power(self, chance: Random, mood: Mood) -> None:
        content = bytearray(self._base)
        for edit in self._edits:
            if edit.fate is Fate.DURABLE or mood is Mood.EVERYTHING:
                _apply(content, edit.position, edit.data)
            elif mood is Mood.MIXED:
                _apply_some(content, edit, chance)
        self._base = content
        self.data = bytearray(content)
        self._edits.clear()
        self.version += 1
        self.durable_version += 1
        self._changed()

    def flip(self, position: int, bit: int) -> None:
        """The medium decays: the same bit changes in memory and on the disk."""
        for content in (self.data, self._base):
            if position < len(content):
                content[position] ^= 1 << bit
        self.version += 1
        self.durable_version += 1
        self._changed()


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    if data is None:
        del content[position:]
        content.extend(bytes(position - len(content)))
        return
    if position > len(content):
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _apply_some(content: bytearray, edit: Edit, chance: Random) -> None:
    luck = chance.random()
    if luck < 0.4:
        return
    if luck < 0.7 or edit.data is None:
        _apply(content, edit.position, edit.data)
    elif chance.random() < 0.5:
        _apply(content, edit.position, edit.data[: chance.randrange(len(edit.data) + 1)])
    else:
        end = edit.position + len(edit.data)
        start = edit.position
        while start < end:
            stop = min(end, start - start % SECTOR + SECTOR)
            if chance.random() < 0.5:
                _apply(content, start, edit.data[start - edit.position : stop - edit.position])
            start = stop


class Entry:
    """One change of a folder: `name` now leads to `node` (None: to nothing), and `old` no longer to it."""

    __slots__ = ("name", "node", "number", "old")

    def __init__(self, number: int, name: str, node: Inode | Folder | None, old: str | None) -> None:
        self.number = number
        self.name = name
        self.node = node
        self.old = old


class Folder:
    """Names: as a running machine sees them, and as they survive a power cut."""

    __slots__ = ("_entries", "_last", "durable_names", "names", "stamp")

    def __init__(self) -> None:
        self.names: dict[str, Inode | Folder] = {}
        self.durable_names: dict[str, Inode | Folder] = {}
        self._entries: list[Entry] = []
        self._last = 0
        self.stamp = 0  # grows with every change of the folder or of a file in it

    def set(self, name: str, node: Inode | Folder | None, old: str | None = None) -> None:
        self._last += 1
        self.stamp += 1
        if isinstance(node, Inode):
            node.home = self
        entry = Entry(self._last, name, node, old)
        _enter(self.names, entry)
        self._entries.append(entry)

    def begin_sync(self) -> int:
        return self._last

    def end_sync(self, up_to: int) -> None:
        while self._entries and self._entries[0].number <= up_to:
            _enter(self.durable_names, self._entries.pop(0))
        self.stamp += 1

    def cut_power(self, chance: Random, mood: Mood) -> None:
        for entry in self._entries:
            if mood is Mood.EVERYTHING or (mood is Mood.MIXED and chance.random() < 0.5):
                _enter(self.durable_names, entry)
        self._entries.clear()
        self.names = dict(self.durable_names)
        self.stamp += 1
        for name in sorted(self.names):
            self.names[name].cut_power(chance, mood)


def _enter(names: dict[str, Inode | Folder], entry: Entry) -> None:
    if entry.old is not None:
        names.pop(entry.old, None)
    if entry.node is None:
        names.pop(entry.name, None)
    else:
        names[entry.name] = entry.node
