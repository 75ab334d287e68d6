"""A child process that never outlives its parent, however the parent ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

CHILD_VARIABLE = "PENSTOCK_CHILD"  # set by the supervisor for what it starts
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> threading.Event:
    """End this process when its standard input ends, or, on Linux, when its parent dies. Call it first of all.

    The event is set once the parent has said something on that input.
    """
    told = threading.Event()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(told,), name="lifeline", daemon=True).start()
    return told


def _watch(told: threading.Event) -> None:
    while os.read(0, 1024):
        told.set()
    os._exit(0)  # the parent is gone: whoever starts next must find no port taken
