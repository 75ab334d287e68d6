"""Syncs run by Linux itself (its AIO): no thread of ours, so nobody waits for the interpreter's lock."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from struct import Struct
from typing import Any

_CALL_NUMBERS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}  # io_setup, _destroy, _submit, _getevents
_FDSYNC = 3  # IOCB_CMD_FDSYNC: does what fdatasync does
_TELL = 1  # IOCB_FLAG_RESFD: an eventfd hears of the end
# <linux/aio_abi.h> as little-endian machines have it. Packed, not ctypes structures: those took 50 us for a few files.
_IOCB = Struct("<QIIHhI QQqQ II")  # data, key, flags of rw, opcode, priority, fd; buffer; flags, fd that is told
_IOCB_FRONT = Struct("<QIIHhI")
_IO_EVENT = Struct("<QQqq")  # data, iocb, result, result2
_POINTER = Struct("<Q")
_LONG, _ADDRESS = ctypes.c_long, ctypes.c_void_p


class _Buffer:
    """Memory that Linux reads or writes."""

    def __init__(self, size: int) -> None:
        self._kept = ctypes.create_string_buffer(size)
        self.address = ctypes.addressof(self._kept)
        self.view = memoryview(self._kept).cast("B")


class KernelSyncs:
    """Up to `room` syncs under way; `wake_fd`, an eventfd, hears of their ends."""

    def __init__(self, room: int, wake_fd: int) -> None:
        """OSError where the kernel, or the sandbox around us, has no AIO."""
        numbers = _CALL_NUMBERS.get(platform.machine())
        is_known = sys.platform == "linux" and sys.byteorder == "little" and sys.maxsize > 2**32
        if numbers is None or not is_known:
            raise OSError(f"no calls for AIO are known on {sys.platform}, {platform.machine()}")
        setup, self._destroy_number, self._submit_number, self._getevents_number = numbers
        self.room = room
        self._most = room
        # Two sets, so that nobody has to say each time whether the eventfd is told.
        self._told, self._untold = (self._make_iocbs(wake_fd, flags) for flags in (_TELL, 0))
        self._events = _Buffer(room * _IO_EVENT.size)
        self._at_once = _Buffer(16)  # struct timespec, of no time
        context = _Buffer(_POINTER.size)
        _checked(_call(_LONG, _LONG, _ADDRESS)(setup, room, context.address))
        (self._context,) = _POINTER.unpack(context.view)
        self._io_submit = _call(_LONG, _ADDRESS, _LONG, _ADDRESS)
        self._io_getevents = _call(_LONG, _ADDRESS, _LONG, _LONG, _ADDRESS, _ADDRESS)

    def _make_iocbs(self, wake_fd: int, flags: int) -> tuple[_Buffer, _Buffer]:
        """As many as there is room for, and the pointers to them."""
        iocbs, pointers = _Buffer(self._most * _IOCB.size), _Buffer(self._most * _POINTER.size)
        for number in range(self._most):
            at = number * _IOCB.size
            _IOCB.pack_into(iocbs.view, at, 0, 0, 0, _FDSYNC, 0, 0, 0, 0, 0, 0, flags, wake_fd)
            _POINTER.pack_into(pointers.view, number * _POINTER.size, iocbs.address + at)
        return iocbs, pointers

    def submit(self, wanted: list[tuple[int, int]], *, is_told: bool) -> int:
        """Start to sync each (ticket, file handle); how many of them, from the first on, are under way.

        Not told: `wake_fd` stays silent, since somebody waits for their end.
        """
        count = min(len(wanted), self.room)
        if count == 0:
            return 0
        iocbs, pointers = self._told if is_told else self._untold
        at = 0
        for ticket, handle in wanted[:count]:
            _IOCB_FRONT.pack_into(iocbs.view, at, ticket, 0, 0, _FDSYNC, 0, handle)
            at += _IOCB.size
        # Below 0: the first of them cannot be synced this way, and who syncs it another way learns why.
        taken: int = max(0, self._io_submit(self._submit_number, self._context, count, pointers.address))
        self.room -= taken
        return taken

    def ended(self, at_least: int) -> list[tuple[int, int]]:
        """Ticket and errno (0: synced) of those that have ended; waits until they are `at_least` so many."""
        found: list[tuple[int, int]] = []
        events = self._events
        while True:
            least = max(0, at_least - len(found))
            deadline = None if least else self._at_once.address
            try:
                count = _checked(
                    self._io_getevents(
                        self._getevents_number, self._context, least, self._most, events.address, deadline
                    )
                )
            except InterruptedError:
                continue  # a signal: its handler has run
            self.room += count
            size = count * _IO_EVENT.size
            found += [(ticket, -result) for ticket, _, result, _ in _IO_EVENT.iter_unpack(events.view[:size])]
            if len(found) >= at_least:
                return found

    def close(self) -> None:
        """Waits for what is under way."""
        _checked(_call(_LONG, _ADDRESS)(self._destroy_number, self._context))


def _call(*kinds: Any) -> Any:
    """Linux's `syscall` with arguments of these kinds, the number of the call first."""
    function = ctypes.CDLL(None, use_errno=True)["syscall"]
    function.argtypes = kinds
    function.restype = _LONG
    return function


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
