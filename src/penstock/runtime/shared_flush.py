"""Several files synced together: the data of each is written out, then one flush of the disk's own cache covers all.

On ext4 only, and for bytes that were written over others that are durable (ADR 13): nothing but the data and the flush
is needed there, and `fdatasync` of each file would flush as often as there are files.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
from pathlib import Path

_WRITE_AND_WAIT = 1 | 2 | 4  # SYNC_FILE_RANGE_WAIT_BEFORE, _WRITE and _WAIT_AFTER: as an fdatasync writes data
_WRITE = 2  # only begin to
_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS
_DATA_IN_JOURNAL = 0x4000  # FS_JOURNAL_DATA_FL

_sync_fd = getattr(os, "fdatasync", os.fsync)


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

    def run(self, grown: list[int], overwritten: list[int]) -> dict[int, int]:
        """The errno of each file handle, 0 if it is durable now; nothing is tried twice.

        `grown`: files of which more than data must be synced. If the first flush fails, all of them have failed:
        nobody knows what the disk holds of any.
        """
        handles = [*grown, *overwritten]
        for handle in handles:
            self._range(handle, 0, 0, _WRITE)  # so that the disk works on all of them; what fails is told below
        errors = {handle: self._write_out(handle) for handle in handles}
        whole = [handle for handle in handles if not errors[handle]]
        is_flushed = False
        for handle in [handle for handle in grown if not errors[handle]] or whole[-1:]:
            try:
                _sync_fd(handle)
                is_flushed = True
            except OSError as error:
                errors.update(dict.fromkeys([handle] if is_flushed else whole, error.errno or errno.EIO))
                if not is_flushed:
                    break
        return errors

    def _write_out(self, handle: int) -> int:
        return 0 if self._range(handle, 0, 0, _WRITE_AND_WAIT) == 0 else ctypes.get_errno() or errno.EIO


def _refuse_other_ways(folder: str, device: int) -> None:
    """OSError unless this is ext4 that keeps data out of its journal."""
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    try:
        options = Path(f"/proc/fs/ext4/{block.resolve(strict=True).name}/options").read_text().split()
    except OSError:
        raise OSError("the file system is not ext4, or does not tell") from None
    if "data=journal" in options or _flags(folder) & _DATA_IN_JOURNAL:
        raise OSError("ext4 keeps data in its journal")


def _flags(folder: str) -> int:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        (flags,) = struct.unpack("l", fcntl.ioctl(fd, _GET_FLAGS, struct.pack("l", 0)))
    finally:
        os.close(fd)
    return int(flags)
