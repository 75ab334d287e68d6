"""`penstock broker`: a node on a real disk, real sockets and a real clock."""

from __future__ import annotations

import ipaddress
import os
import resource
import signal
import socket
import sys
from uuid import UUID, uuid4

from penstock.broker.node import Node
from penstock.config import BrokerConfig
from penstock.errors import ConfigError, PenstockError
from penstock.runtime.clock import SteadyClock
from penstock.runtime.disk import RealDisk, lock_folder
from penstock.runtime.logs import log_line
from penstock.runtime.loop import Loop
from penstock.runtime.syncing import SyncPool

BACKLOG = 1024


def run_broker(config: BrokerConfig) -> int:
    """Serve until SIGTERM or SIGINT; the exit status of the process. ConfigError if it cannot start."""
    host, port = parse_address("listen", config.listen)
    refuse_exposure("listen", host, config.insecure)
    metrics = parse_address("metrics", config.metrics) if config.metrics else None
    if metrics is not None:
        refuse_exposure("metrics", metrics[0], config.insecure)
    lock = lock_folder(config.data)
    _raise_handle_limit()
    listener = _listen("listen", host, port)
    port = listener.getsockname()[1]
    clock = SteadyClock()
    disk = RealDisk(config.data)
    advertised = parse_address("advertise", config.advertise) if config.advertise else (host, port)
    node = Node(disk, config, advertised, _random_id, clock.now_ms())
    pool = SyncPool(disk, config.sync_threads, config.sync_inline_us_max)
    loop = Loop(node, config, clock, pool)
    loop.listen(listener)
    if metrics is not None:
        loop.listen(_listen("metrics", *metrics), http=True)
    _stop_on_signals(loop)
    sys.stdout.write(f"ready {host}:{port}\n")
    sys.stdout.flush()
    try:
        loop.run()
    except PenstockError as error:
        log_line("critical", "the node stops", reason=str(error))
        return 1
    finally:
        os.close(lock)
    return 0


def _random_id() -> UUID:
    return uuid4()


def parse_address(name: str, text: str) -> tuple[str, int]:
    """HOST:PORT, or [HOST]:PORT for IPv6."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{name} must be HOST:PORT, not {text!r}")
    return host, int(port)


def refuse_exposure(name: str, host: str, insecure: bool) -> None:
    """Without authentication, only this machine may reach the broker, unless the operator insists."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback and not insecure:
        raise ConfigError(
            f"{name} {host} can be reached from other machines, and this broker has no authentication yet: "
            "listen on 127.0.0.1, or give --insecure if the network is trusted"
        )


def _listen(name: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise ConfigError(f"cannot listen on {host}:{port} ({error.strerror}): choose another --{name}") from None
    return sock


def _raise_handle_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _stop_on_signals(loop: Loop) -> None:
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    loop.wake_on(reader)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())
