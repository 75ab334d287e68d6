"""Ports for what is started again: free, never given twice, and outside the range of clients."""

from __future__ import annotations

import socket
from pathlib import Path

from penstock.process.free_port import free_port


def test_each_port_is_free_and_given_once() -> None:
    """Outside the range from which Linux takes the ports of clients."""
    ports = [free_port() for _ in range(200)]
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert len(set(ports)) == len(ports)
    assert not [port for port in ports if first <= port <= last]
    for port in ports[:10]:
        socket.create_server(("127.0.0.1", port)).close()
