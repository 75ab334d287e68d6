"""A file system of our own in a loop-mounted image, whose power can be cut. Needs root."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import PenstockError

# FS_IOC_SHUTDOWN of the kernel's ext4, and its flag to throw away the journal in memory too.
_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2
_UNMOUNT_WITHIN_S = 20.0


class FragileDisk:
    """ext4 in a file, mounted at `folder`/disk while in use; tmpfs would lose everything, a real disk nothing."""

    def __init__(self, folder: Path, size_bytes: int) -> None:
        self.root = folder / "disk"
        self._image = folder / "disk.img"
        self._size = size_bytes
        self._is_mounted = False

    def __enter__(self) -> Self:
        with self._image.open("wb") as image:
            image.truncate(self._size)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self.root.mkdir()
        self.mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_mounted:
            self.unmount()
        self._image.unlink()

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.root))
        self._is_mounted = True

    def unmount(self) -> None:
        """Unmount as soon as the processes killed before have let go of their files."""
        deadline = time.monotonic() + _UNMOUNT_WITHIN_S
        while True:
            try:
                _run("umount", str(self.root))
                break
            except PenstockError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self._is_mounted = False

    def cut_power(self) -> None:
        """From now on nothing reaches the image: what was not synced is gone at the next mount."""
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(fd)


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PenstockError(f"{' '.join(command)} failed: {done.stderr.strip()}")
