"""Several files synced together: the data of each is written out, then one flush of the disk's own cache covers all.

On ext4 only, and for bytes that were written over others that are durable (ADR 13): nothing but the data and the flush
is needed there, and `fdatasync` of each file would flush as often as there are files.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import struct
import sys
from pathlib import Path

_BEGIN = 2  # SYNC_FILE_RANGE_WRITE
_WRITE_AND_WAIT = 1 | 2 | 4  # _WAIT_BEFORE, _WRITE and _WAIT_AFTER: all of the data, as an fdatasync writes it
_KERNEL_LEAST = (5, 2)  # before, these three together left out what was locked
_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS
_DATA_IN_JOURNAL = 0x4000  # FS_JOURNAL_DATA_FL


class SharedFlush:
    """Syncs of several files of one file system at once."""

    def __init__(self, folder: str) -> None:
        """OSError with the reason where one flush for several files is not known to be enough."""
        if not sys.platform.startswith("linux"):
            raise OSError(f"it is not known how files are synced on {sys.platform}")
        self._range = ctypes.CDLL(None, use_errno=True)["sync_file_range"]
        self._range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
        self._range.restype = ctypes.c_int
        self.device = os.stat(folder).st_dev
        _refuse_other_ways(folder, self.device)

    def run(self, overwritten: list[int]) -> dict[int, int]:
        """The errno of each file handle, 0 if it is durable now; nothing is tried twice.

        If the flush fails, all of them have failed: nobody knows what the disk holds of any.
        """
        errors = {handle: self._ask(handle, _BEGIN) for handle in overwritten}  # the disk works on all of them
        for handle in overwritten:
            errors[handle] = errors[handle] or self._ask(handle, _WRITE_AND_WAIT)
        if whole := [handle for handle in overwritten if not errors[handle]]:
            try:
                _sync_fd(whole[-1])
            except OSError as error:
                errors.update(dict.fromkeys(whole, error.errno or errno.EIO))
        return errors

    def _ask(self, handle: int, flags: int) -> int:
        return 0 if self._range(handle, 0, 0, flags) == 0 else ctypes.get_errno() or errno.EIO


def _sync_fd(handle: int) -> None:
    os.fdatasync(handle)


def _refuse_other_ways(folder: str, device: int) -> None:
    """OSError unless this is ext4 that keeps data out of its journal, on a kernel of today."""
    version = re.match(r"(\d+)\.(\d+)", platform.release())
    if version is None or (int(version[1]), int(version[2])) < _KERNEL_LEAST:
        raise OSError(f"Linux {platform.release()} is too old")
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    try:
        options = Path(f"/proc/fs/ext4/{block.resolve(strict=True).name}/options").read_text().split()
    except OSError:
        raise OSError("the file system is not ext4, or does not tell") from None
    if "data=journal" in options or _flags(folder) & _DATA_IN_JOURNAL:
        raise OSError("ext4 keeps data in its journal")


def _flags(folder: str) -> int:
    """Of a folder; what is made in it has the same."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        (flags,) = struct.unpack("l", fcntl.ioctl(fd, _GET_FLAGS, struct.pack("l", 0)))
    finally:
        os.close(fd)
    return int(flags)
