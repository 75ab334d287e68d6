"""What the core asks of the world: a disk. Time is an argument; the network is effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    """One file. Every method may raise OSError; what was written is durable only after a sync."""

    @property
    def path(self) -> str: ...

    def size(self) -> int: ...

    def write(self, position: int, chunks: Sequence[Buffer]) -> None:
        """Write all chunks from `position` on, or raise; after a raise a part of them may be there."""

    def read(self, position: int, length: int) -> bytes:
        """At most `length` bytes from `position`; shorter only at the end of the file."""

    def is_at_hand(self, position: int, length: int) -> bool:
        """Whether reading this would not wait for the disk; True where nobody can tell."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Block until data and size are durable. The hot path uses a Sync effect instead."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A tree of files below one root; paths are relative, with forward slashes."""

    def open(self, path: str) -> File:
        """Open an existing file for reading and writing; FileNotFoundError if there is none."""

    def create(self, path: str) -> File:
        """Create an empty file, or empty an existing one; its name is durable after sync_folder."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted; FileNotFoundError if there is none."""

    def make_folder(self, path: str) -> None:
        """Create a folder (its parent exists); fine if it is there already."""

    def remove(self, path: str) -> None:
        """Remove a file; fine if it is gone already."""

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all in it; fine if it is gone already."""

    def rename(self, old: str, new: str) -> None:
        """Move a file over another in one step; durable after sync_folder."""

    def sync_folder(self, path: str) -> None:
        """Block until the names in this folder are durable."""
