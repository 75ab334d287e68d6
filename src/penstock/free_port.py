"""Ports for processes that are started, and started again, beside others."""

from __future__ import annotations

import random
import socket

from penstock.errors import PenstockError

# Linux gives ports from 32768 on to whoever connects: one of those may be a client's when a process comes back to it.
_FIRST, _BEHIND_LAST = 15_000, 32_768
_TRIES = 1_000


def free_port() -> int:
    """A port of the loopback address that nobody listens on now, and that no client is given meanwhile."""
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        port = chance.randrange(_FIRST, _BEHIND_LAST)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise PenstockError(f"none of {_TRIES} ports from {_FIRST} to {_BEHIND_LAST - 1} is free: end what holds them")
