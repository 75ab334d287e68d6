"""A disk in memory that does everything at once: it shows what the core costs without one."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.ports import Buffer


class InstantFile:
    """Bytes with a path."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._data = bytearray()

    def size(self) -> int:
        return len(self._data)

    def write(self, position: int, chunks: Sequence[Buffer]) -> None:
        joined = b"".join(chunks)
        self._data[position : position + len(joined)] = joined

    def read(self, position: int, length: int) -> bytes:
        return bytes(self._data[position : position + length])

    def is_at_hand(self, position: int, length: int) -> bool:
        return True

    def truncate(self, size: int) -> None:
        del self._data[size:]

    def sync(self) -> None:
        """Nothing is ever unsynced."""

    def close(self) -> None:
        """A file stays where it is."""


class InstantDisk:
    """Files by path; folders are remembered only as names."""

    def __init__(self) -> None:
        self._files: dict[str, InstantFile] = {}
        self._folders: set[str] = {""}

    def open(self, path: str) -> InstantFile:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def create(self, path: str) -> InstantFile:
        self._files[path] = file = InstantFile(path)
        return file

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._folders

    def names(self, folder: str) -> list[str]:
        if folder not in self._folders:
            raise FileNotFoundError(folder)
        below = f"{folder}/" if folder else ""
        paths = [path for path in (*self._files, *self._folders) if path.startswith(below) and path != folder]
        return sorted({path[len(below) :].split("/")[0] for path in paths})

    def make_folder(self, path: str) -> None:
        self._folders.add(path)

    def remove(self, path: str) -> None:
        self._files.pop(path, None)

    def remove_folder(self, path: str) -> None:
        for name in [name for name in self._files if name.startswith(f"{path}/")]:
            del self._files[name]
        self._folders = {name for name in self._folders if name != path and not name.startswith(f"{path}/")}

    def rename(self, old: str, new: str) -> None:
        file = self._files.pop(old)
        file.path = new
        self._files[new] = file

    def sync_folder(self, path: str) -> None:
        """Names are never unsynced."""
