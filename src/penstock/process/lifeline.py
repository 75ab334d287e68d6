"""A child process that never outlives its parent, and a parent that cleans up after itself when told to end."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

CHILD_VARIABLE = "PENSTOCK_CHILD"  # set for a broker by who starts it: the supervisor with its name, or a drill
DRILLED = "drilled"
_PR_SET_PDEATHSIG = 1
OnLine = Callable[[str], None]
_TOLD_TO_END = (signal.SIGTERM, signal.SIGHUP)


def die_with_parent(on_line: OnLine | None = None) -> None:
    """End this process when its standard input ends, or, on Linux, when its parent dies. Call it first of all.

    Each line that the parent writes goes to `on_line`, in a thread of its own.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    die_with_input(on_line)


def die_with_input(on_line: OnLine | None = None) -> None:
    """As above, by standard input alone: Linux sends its signal when the thread ends that started this process."""
    threading.Thread(target=_watch, args=(on_line,), name="lifeline", daemon=True).start()


def exit_when_told() -> None:
    """SIGTERM ends this process as an exit does, so that whatever it started is ended by whoever started it."""
    for number in _TOLD_TO_END:
        signal.signal(number, _exit)


def _exit(number: int, _: FrameType | None) -> None:
    for each in _TOLD_TO_END:
        signal.signal(each, signal.SIG_IGN)  # cleaning up is not interrupted
    sys.exit(128 + number)


def _watch(on_line: OnLine | None) -> None:
    left = b""
    while data := os.read(0, 64 * 1024):
        *lines, left = (left + data).split(b"\n")
        if on_line is not None:
            for line in lines:
                on_line(line.decode())
    os._exit(0)  # the parent is gone: whoever starts next must find no port taken
