"""Syncs run by Linux itself (its AIO): no thread of ours, so nobody waits for the interpreter's lock."""

from __future__ import annotations

import ctypes
import os
import platform
import sys

_IO_SETUP, _IO_DESTROY, _IO_SUBMIT, _IO_GETEVENTS = range(4)
_CALL_NUMBERS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
_FDSYNC = 3  # IOCB_CMD_FDSYNC: does what fdatasync does
_TELL = 1  # IOCB_FLAG_RESFD: an eventfd hears of the end


class _Iocb(ctypes.Structure):
    """struct iocb of <linux/aio_abi.h>, as little-endian machines have it."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("fd", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("told_fd", ctypes.c_uint32),
    )


class _IoEvent(ctypes.Structure):
    """struct io_event of <linux/aio_abi.h>."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("iocb", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result2", ctypes.c_int64),
    )


class KernelSyncs:
    """Up to `room` syncs under way; `wake_fd`, an eventfd, hears of their ends."""

    def __init__(self, room: int, wake_fd: int) -> None:
        """OSError where the kernel, or the sandbox around us, has no AIO."""
        numbers = _CALL_NUMBERS.get(platform.machine())
        is_known = sys.platform == "linux" and sys.byteorder == "little" and sys.maxsize > 2**32
        if numbers is None or not is_known:
            raise OSError(f"no calls for AIO are known on {sys.platform}, {platform.machine()}")
        self._numbers = [ctypes.c_long(number) for number in numbers]
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        self.room = room
        self._iocbs = (_Iocb * room)()
        for iocb in self._iocbs:
            iocb.opcode, iocb.told_fd = _FDSYNC, wake_fd
        self._pointers = (ctypes.POINTER(_Iocb) * room)(*map(ctypes.pointer, self._iocbs))
        self._events = (_IoEvent * room)()
        self._at_once = (ctypes.c_long * 2)(0, 0)  # struct timespec
        self._context = ctypes.c_ulong(0)
        self._call(_IO_SETUP, ctypes.c_long(room), ctypes.byref(self._context))

    def _call(self, which: int, *arguments: object) -> int:
        result: int = self._syscall(self._numbers[which], *arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def submit(self, wanted: list[tuple[int, int]], *, is_told: bool) -> int:
        """Start to sync each (ticket, file handle); how many of them, from the first on, are under way.

        Not told: `wake_fd` stays silent, since somebody waits for their end.
        """
        count = min(len(wanted), self.room)
        for iocb, (ticket, handle) in zip(self._iocbs, wanted[:count], strict=False):
            iocb.data, iocb.fd, iocb.flags = ticket, handle, _TELL if is_told else 0
        try:
            count = self._call(_IO_SUBMIT, self._context, ctypes.c_long(count), self._pointers) if count else 0
        except OSError:
            count = 0  # the first of them cannot be synced this way: who syncs it another way learns why
        self.room -= count
        return count

    def ended(self, at_least: int) -> list[tuple[int, int]]:
        """Ticket and errno (0: synced) of those that have ended; waits until they are `at_least` so many."""
        found: list[tuple[int, int]] = []
        while True:
            least, most = ctypes.c_long(max(0, at_least - len(found))), ctypes.c_long(len(self._events))
            deadline = self._at_once if least.value == 0 else None
            try:
                count = self._call(_IO_GETEVENTS, self._context, least, most, self._events, deadline)
            except InterruptedError:
                continue  # a signal: its handler has run
            self.room += count
            found += [(event.data, -event.result) for event in self._events[:count]]
            if len(found) >= at_least:
                return found

    def close(self) -> None:
        """Waits for what is under way."""
        self._call(_IO_DESTROY, self._context)
