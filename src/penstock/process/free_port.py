"""Ports for processes that are started, and started again, beside others."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from penstock.errors import PenstockError

_FIRST = 15_000
_CLIENTS_FIRST = 32_768  # Linux's default
_TRIES = 1_000
_given: set[int] = set()


def free_port() -> int:
    """A port of the loopback address that nobody listens on, no client is given meanwhile, and nobody here gets twice.

    Clients are given ports of a range of their own: one of those might be taken when a process comes back to it.
    """
    chance, last = random.SystemRandom(), _clients_first() - 1
    for _ in range(_TRIES):
        port = chance.randrange(_FIRST, last + 1) if last >= _FIRST else 0
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            port = int(sock.getsockname()[1])
        if port not in _given:
            _given.add(port)
            return port
    raise PenstockError(f"none of {_TRIES} ports from {_FIRST} to {last} is free: end what holds them")


def _clients_first() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _CLIENTS_FIRST
