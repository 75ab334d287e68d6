"""The broker that the storm is about: ours, or Apache Kafka, each behind the same gate."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from penstock.drills.broker_process import BROKER, BrokerProcess
from penstock.errors import PenstockError
from penstock.process.free_port import free_port
from proof.oracle.kafka import KafkaNode
from proof.storm.client_library import HEARTBEAT_MS, SESSION_MS

_PLANTED = """
import sys
from penstock.cli.main import main
from proof.sim.bugs.bugs import PLANTS
with PLANTS[sys.argv.pop(1)].planted():
    sys.exit(main())
"""
# One that ended meanwhile cannot be paused or woken; that it ended is seen elsewhere.
_GONE = (PenstockError, OSError, IndexError)
STRACE = ("-f", "-o", os.devnull, "--seccomp-bpf", "-e", "trace=fdatasync", "-e")


def planted(plant: str) -> tuple[str, ...]:
    """How to start a broker with this bug."""
    return (sys.executable, "-c", _PLANTED, plant, "broker")


class Stage(Protocol):
    """A broker in a process of its own, whose clients come through a gate."""

    name: str
    port: int

    @property
    def is_running(self) -> bool: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def pause(self) -> bool:
        """Whether it was there to be paused."""

    def wake(self) -> None: ...

    def finish(self) -> list[str]:
        """Stop it as an operator does; what was wrong with it."""


class PenstockStage:
    """Our broker; its syncs can be made slow or failing from the next start on."""

    name = "penstock"

    def __init__(self, data: Path, folder: Path, gate: int, plant: str | None = None) -> None:
        command = BROKER if plant is None else planted(plant)
        settings = {
            "advertise": f"127.0.0.1:{gate}",
            "consumer_session_ms": SESSION_MS,
            "consumer_heartbeat_ms": HEARTBEAT_MS,
        }
        self._broker = BrokerProcess(data, folder, command=command, settings=settings)
        self._strace = shutil.which("strace")
        self.port = self._broker.port = free_port()

    @property
    def can_break_syncs(self) -> bool:
        return self._strace is not None

    @property
    def is_running(self) -> bool:
        return self._broker.is_running

    def break_syncs(self, injection: str | None) -> None:
        """From the next start on, as strace puts it; None: no more."""
        # strace sees calls, not what the kernel syncs by itself.
        self._broker.settings["sync_in_kernel"] = injection is None
        if injection is None or self._strace is None:
            self._broker.prefix = ()
        else:
            self._broker.prefix = (self._strace, *STRACE, f"inject=fdatasync:{injection}")

    def start(self) -> None:
        self._broker.start()

    def kill(self) -> None:
        self._broker.kill()

    def pause(self) -> bool:
        with suppress(*_GONE):
            self._broker.pause()
            return self._broker.is_running
        return False

    def wake(self) -> None:
        with suppress(*_GONE):
            self._broker.wake()

    def finish(self) -> list[str]:
        status = self._broker.stop()
        troubles = [] if status == 0 else [f"the broker ended with status {status}"]
        return [*troubles, "the broker's log has a traceback"] if "Traceback" in self._broker.said else troubles


class KafkaStage:
    """Apache Kafka; it does not sync, so what it promises holds for a kill and not for a power cut."""

    name = "kafka"

    def __init__(self, folder: Path, gate: int) -> None:
        settings = {
            "group.consumer.min.session.timeout.ms": str(SESSION_MS),
            "group.consumer.session.timeout.ms": str(SESSION_MS),
            "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
            "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
        }
        self._node = KafkaNode(folder / "kafka", settings=settings, advertised=f"127.0.0.1:{gate}")
        self._is_running = False
        self.port = 0

    @property
    def is_running(self) -> bool:
        return self._is_running

    def start(self) -> None:
        self._node.start()
        self._is_running = True
        self.port = int(self._node.address.rpartition(":")[2])

    def kill(self) -> None:
        if self._is_running:
            self._is_running = False
            self._node.kill()

    def pause(self) -> bool:
        with suppress(*_GONE):
            os.kill(self._node.pid, signal.SIGSTOP)
            return True
        return False

    def wake(self) -> None:
        with suppress(*_GONE):
            os.kill(self._node.pid, signal.SIGCONT)

    def finish(self) -> list[str]:
        self._node.stop()
        self._is_running = False
        return []
