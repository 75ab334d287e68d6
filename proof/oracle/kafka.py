"""One real Apache Kafka node on this machine: the oracle of our tests and the peer of our benches."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import ConfigError, PenstockError
from penstock.jvm.java import find_java
from penstock.process.free_port import free_port
from proof.oracle.tools import java_command, run_tool

__all__ = ["KafkaNode", "run_tool"]

_NODE_LOGGING = Path(__file__).with_name("node.log4j2.properties")
_CLUSTER_ID = "cGVuc3RvY2stb3JhY2xlIQ"
_READY_DEADLINE_S = 180.0  # a loaded machine takes its time with a JVM
_STOP_DEADLINE_S = 30.0
_POLL_S = 0.05
_STARTS_MAX = 3  # a port that was free may be taken before Kafka binds it


class KafkaNode:
    """Apache Kafka as broker and controller in one process, its data and logs below `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] | None = None,
        heap: str = "1g",
        java: Path | None = None,
        advertised: str | None = None,
    ) -> None:
        """`advertised`: where clients are sent instead, as through a proxy; the node itself does not go there."""
        self._advertised = advertised
        self._folder = folder.absolute()
        self._extra = dict(settings or {})
        self._heap = heap
        self._java = java or find_java(os.environ)
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """HOST:PORT for clients; the same after a restart unless another program took the port meanwhile."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        return self._running().pid

    @property
    def log_folder(self) -> Path:
        """Where the partitions lie."""
        return self._folder / "data"

    def start(self) -> None:
        """Start on the data that is there; returns when clients are served."""
        if self._process is not None:
            raise ConfigError(f"the Kafka node at {self.address} runs already")
        self._folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, _STARTS_MAX + 1):
            self._configure()
            self._format()
            try:
                self._launch()
                return
            except PenstockError:
                if attempt == _STARTS_MAX or "Address already in use" not in self._last_words():
                    raise
                self._port = 0

    def stop(self) -> None:
        """Let it close its logs and end; killed if it does not within the deadline."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        process, self._process = self._running(), None
        process.kill()
        process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ConfigError("the Kafka node does not run: start it first")
        return self._process

    @property
    def _settings_file(self) -> Path:
        return self._folder / "server.properties"

    def _configure(self) -> None:
        controller_port = free_port()
        self._port = self._port or free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.log_folder),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        if self._advertised is not None:
            inner = f"INNER://127.0.0.1:{free_port()}"
            settings |= {
                "listeners": f"{settings['listeners']},{inner}",
                "advertised.listeners": f"PLAINTEXT://{self._advertised},{inner}",
                "listener.security.protocol.map": f"{settings['listener.security.protocol.map']},INNER:PLAINTEXT",
                "inter.broker.listener.name": "INNER",
            }
        settings |= self._extra
        self._settings_file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _format(self) -> None:
        if (self.log_folder / "meta.properties").exists():
            return
        done = run_tool(
            "kafka.tools.StorageTool",
            "format",
            "-t",
            _CLUSTER_ID,
            "-c",
            str(self._settings_file),
            java=self._java,
        )
        if done.returncode != 0:
            raise PenstockError(f"Kafka refused its settings: {(done.stderr or done.stdout).strip()}")

    def _launch(self) -> None:
        command = java_command(
            "kafka.Kafka",
            str(self._settings_file),
            heap=self._heap,
            java=self._java,
            logging=_NODE_LOGGING,
            flags=[f"-Xms{self._heap}", f"-Dpenstock.log={self._folder / 'kafka.log'}"],
        )
        with (self._folder / "kafka.out").open("wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=self._folder
            )
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._process = None
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _READY_DEADLINE_S
        while not _serves(self._port):
            try:
                # Waiting for its end instead of sleeping: a node that dies is noticed at once.
                status = process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise PenstockError(
                        f"Kafka did not answer within {_READY_DEADLINE_S:.0f} s: {self._last_words()}"
                    ) from None
            else:
                raise PenstockError(f"Kafka ended with status {status} at its start: {self._last_words()}")

    def _last_words(self) -> str:
        said = [self._folder / name for name in ("kafka.out", "kafka.log")]
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in said if path.exists()).strip()


def _serves(port: int) -> bool:
    """Whether the node names itself in its metadata; it answers before it may lead partitions."""
    no_topics = struct.pack(">hhihi", 3, 1, 1, -1, 0)  # Metadata v1, correlation id 1, no client id
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(struct.pack(">i", len(no_topics)) + no_topics)
            head = connection.recv(12, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(head) == 12 and struct.unpack(">iii", head)[2] > 0
