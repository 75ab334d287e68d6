"""`penstock broker`: a node on a real disk, real sockets and a real clock."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from uuid import uuid4

from penstock.config.addresses import read_addresses
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError, PenstockError, StorageError
from penstock.process.file_handles import take_handles
from penstock.process.log_lines import log_line
from penstock.queue.compiled.use import is_compiled
from penstock.queue.core.log_values import OwnLogError
from penstock.queue.node import Node
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.disk import RealDisk, lock_folder
from penstock.queue.server.event_loop import Loop
from penstock.queue.server.sync_pool import SyncPool

GARBAGE_EVERY = 50_000  # requests in flight are no garbage: looking for some every 700 objects took 5 % of the time
BACKLOG = 1024
SPARE_HANDLES = 1024  # for files of partitions; each client is one more


def run_broker(config: BrokerConfig) -> int:
    """Serve until SIGTERM or SIGINT; the exit status of the process. ConfigError if it cannot start."""
    addresses = read_addresses(config)
    lock = lock_folder(config.data)
    take_handles(config.connections_max + SPARE_HANDLES)
    host, port = addresses["listen"]
    listener = _listen("listen", host, port)
    port = listener.getsockname()[1]
    clock = SteadyClock()
    disk = RealDisk(config.data)
    began_ms = clock.now_ms()
    try:
        node = Node(disk, config, addresses.get("advertise", (host, port)), uuid4, began_ms)
    except OwnLogError as damaged:
        raise StorageError(f"{damaged}: 'penstock doctor --data {config.data}' says what can be done") from None
    loop = Loop(node, config, clock, SyncPool(disk, config))
    loop.listen(listener)
    if "metrics" in addresses:
        metrics = _listen("metrics", *addresses["metrics"])
        log_line("info", "metrics", address=":".join(map(str, metrics.getsockname()[:2])))
        loop.listen(metrics, http=True)
    topics, partitions = len(node.catalog.topics), node.catalog.partition_count
    log_line("info", "started", data=config.data, topics=topics, partitions=partitions, is_compiled=is_compiled())
    _stop_on_signals(loop)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_EVERY)
    sys.stdout.write(f"ready {host}:{port}\n")
    sys.stdout.flush()
    try:
        loop.run()
        log_line("info", "stopped")
    except PenstockError as error:
        log_line("critical", "the node stops", reason=str(error))
        return 1
    finally:
        os.close(lock)
    return 0


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


def _stop_on_signals(loop: Loop) -> None:
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    loop.wake_on(reader)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())
