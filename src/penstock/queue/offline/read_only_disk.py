"""A data folder that can only be read: for looking at damage without adding any."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from typing import NoReturn

from penstock.errors import StorageError
from penstock.ports import Buffer

LOCK = "lock"


def _refuse() -> NoReturn:
    raise StorageError("this data folder was opened for reading only")


class ReadOnlyFile:
    """A file of which the kernel was asked no more than to read."""

    def __init__(self, path: str, full_path: str) -> None:
        self.path = path
        self._fd = os.open(full_path, os.O_RDONLY | os.O_CLOEXEC)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def read(self, position: int, length: int) -> bytes:
        data = os.pread(self._fd, length, position)
        while len(data) < length and (more := os.pread(self._fd, length - len(data), position + len(data))):
            data += more
        return data

    def is_at_hand(self, position: int, length: int) -> bool:
        return True

    def close(self) -> None:
        os.close(self._fd)

    def write(self, position: int, chunks: Sequence[Buffer]) -> None:
        _refuse()

    def truncate(self, size: int) -> None:
        _refuse()

    def sync(self) -> None:
        _refuse()


class ReadOnlyDisk:
    """The disk port with every call that changes something refused; works on a read-only mount too."""

    def __init__(self, root: str) -> None:
        self._root = root

    def open(self, path: str) -> ReadOnlyFile:
        return ReadOnlyFile(path, f"{self._root}/{path}")

    def exists(self, path: str) -> bool:
        return os.path.exists(f"{self._root}/{path}")

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(f"{self._root}/{folder}"))

    def is_in_use(self) -> bool:
        """Whether a broker holds the lock of this folder."""
        try:
            fd = os.open(f"{self._root}/{LOCK}", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def create(self, path: str) -> ReadOnlyFile:
        _refuse()

    def make_folder(self, path: str) -> None:
        _refuse()

    def remove(self, path: str) -> None:
        _refuse()

    def remove_folder(self, path: str) -> None:
        _refuse()

    def rename(self, old: str, new: str) -> None:
        _refuse()

    def sync_folder(self, path: str) -> None:
        _refuse()
