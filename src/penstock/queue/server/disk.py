"""The real disk below a data folder."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import ConfigError
from penstock.ports import Buffer
from penstock.queue.server.durable_extent import Extent

_IOV_MAX = 1024
_LOOK_EVERY = 32 * 1024
_LOOKS = [bytearray(1)]
_NO_WAIT = getattr(os, "RWF_NOWAIT", 0)  # elsewhere than on Linux nobody can tell, and it is read at once
HANDLES_MAX = 4096

_sync_fd = getattr(os, "fdatasync", os.fsync)


class RealFile:
    """A file opened when used. Its handle may be given up while nothing unsynced is in it."""

    __slots__ = (
        "_disk", "_extent", "_fd", "_is_closing", "_is_dirty", "_syncs", "full_path", "path",
    )  # fmt: skip

    def __init__(self, disk: RealDisk, path: str, fd: int) -> None:
        self._disk = disk
        self.path = path
        self.full_path = disk.full_path(path)
        self._fd = fd
        self._is_dirty = False
        self._is_closing = False
        self._syncs = 0
        self._extent: Extent | None = None

    @property
    def open_handle(self) -> int:
        """Its file handle; -1 if it was given up, which it is not while anything unsynced is in it."""
        return self._fd

    def _handle(self) -> int:
        if self._fd < 0:
            self._fd = _opened(self.full_path, 0)
            self._disk.opened(self)
        return self._fd

    @property
    def can_give_up(self) -> bool:
        return not self._is_dirty and self._syncs == 0

    def give_up(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def size(self) -> int:
        return os.fstat(self._handle()).st_size

    def write(self, position: int, chunks: Sequence[Buffer]) -> None:
        self._is_dirty = True
        fd = self._handle()
        if self._extent is None:
            status = os.fstat(fd)
            self._extent = Extent(status.st_dev, status.st_size)
        self._extent.on_write(position, position + sum(map(len, chunks)))
        try:
            _write_all(fd, position, chunks)
        except OSError:
            self._extent = None  # nobody knows how long it is now
            raise

    def read(self, position: int, length: int) -> bytes:
        data = os.pread(self._handle(), length, position)
        while len(data) < length:
            more = os.pread(self._fd, length - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    def is_at_hand(self, position: int, length: int) -> bool:
        """Looks at single bytes: the kernel reads and forgets larger pieces than those between them."""
        last = position + length - 1
        try:
            for at in (*range(position, last, _LOOK_EVERY), last):
                os.preadv(self._handle(), _LOOKS, at, _NO_WAIT)
        except BlockingIOError:
            return False
        except OSError:
            pass  # a file system that cannot tell, or an error that whoever reads will meet
        return True

    def truncate(self, size: int) -> None:
        self._is_dirty = True
        self._extent = None
        os.ftruncate(self._handle(), size)

    def begin_sync(self) -> None:
        """Called by the loop before it is synced: from here on the handle stays open."""
        self._is_dirty = False  # a write from here on makes it dirty again
        self._syncs += 1
        if self._extent is not None:
            self._extent.begin_sync()

    def is_overwritten_on(self, device: int) -> bool:
        """Whether all that the sync begun last is about is data, on this device, in places that are durable."""
        return self._extent is not None and self._extent.is_overwritten and self._extent.device == device

    def run_sync(self) -> None:
        """The sync itself, in any thread; a file with unsynced writes still has its handle."""
        _sync_fd(self._fd if self._fd >= 0 else self._handle())

    def end_sync(self, *, is_durable: bool) -> None:
        """Called by the loop after it was synced."""
        self._syncs -= 1
        if self._extent is not None and (self._syncs == 0 or not is_durable):
            self._extent.end_sync(is_durable=is_durable)
        if self._is_closing and self._syncs == 0:
            self.give_up()

    def sync(self) -> None:
        _sync_fd(self._handle())
        self._is_dirty = False

    def close(self) -> None:
        """Let go of the handle, once the syncs under way have ended."""
        self._is_closing = True
        self._disk.closed(self)
        if self._syncs == 0:
            self.give_up()


def _opened(path: str, flags: int) -> int:
    fd = os.open(path, flags | os.O_RDWR | os.O_CLOEXEC, 0o640)
    if hasattr(os, "posix_fadvise"):
        # Else Linux reads up to read_ahead_kb ahead, which was 8 MB here, or 45 ms, and each sync waits behind that.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    return fd


def _write_all(fd: int, position: int, chunks: Sequence[Buffer]) -> None:
    if len(chunks) == 1 and os.pwrite(fd, chunks[0], position) == len(chunks[0]):
        return
    pending = list(chunks)
    while pending:
        group = pending[:_IOV_MAX]
        wanted = sum(map(len, group))
        written = os.pwritev(fd, group, position)
        position += written
        if written == wanted:
            del pending[: len(group)]
        else:
            pending = _without(pending, written)


def _without(chunks: list[Buffer], written: int) -> list[Buffer]:
    """What is left of `chunks` after a short write."""
    for number, chunk in enumerate(chunks):
        if written < len(chunk):
            return [memoryview(chunk)[written:], *chunks[number + 1 :]]
        written -= len(chunk)
    return []


class RealDisk:
    """Paths are relative to `root`; clean handles beyond a limit are closed, those opened longest ago first."""

    def __init__(self, root: str, handles_max: int = HANDLES_MAX) -> None:
        self._root = root
        self._handles_max = handles_max
        self._open: OrderedDict[RealFile, None] = OrderedDict()

    def full_path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def opened(self, file: RealFile) -> None:
        self._open[file] = None
        if len(self._open) > self._handles_max:
            idle = [other for other in self._open if other.can_give_up and other is not file]
            for other in idle[: self._handles_max // 8]:
                other.give_up()
                del self._open[other]

    def closed(self, file: RealFile) -> None:
        self._open.pop(file, None)

    def _file(self, path: str, flags: int) -> RealFile:
        file = RealFile(self, path, _opened(self.full_path(path), flags))
        self.opened(file)
        return file

    def open(self, path: str) -> RealFile:
        return self._file(path, 0)

    def create(self, path: str) -> RealFile:
        return self._file(path, os.O_CREAT | os.O_TRUNC)

    def exists(self, path: str) -> bool:
        return os.path.exists(self.full_path(path))

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(self.full_path(folder)))

    def make_folder(self, path: str) -> None:
        os.makedirs(self.full_path(path), mode=0o750, exist_ok=True)

    def remove(self, path: str) -> None:
        Path(self.full_path(path)).unlink(missing_ok=True)

    def remove_folder(self, path: str) -> None:
        if self.exists(path):
            shutil.rmtree(self.full_path(path))

    def rename(self, old: str, new: str) -> None:
        os.replace(self.full_path(old), self.full_path(new))

    def sync_folder(self, path: str) -> None:
        fd = os.open(self.full_path(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def lock_folder(root: str) -> int:
    """Take the data folder for this process; ConfigError if another broker has it."""
    os.makedirs(root, mode=0o750, exist_ok=True)
    fd = os.open(f"{root}/lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ConfigError(f"another broker is using {root}: stop it, or give this one another --data folder") from None
    return fd
