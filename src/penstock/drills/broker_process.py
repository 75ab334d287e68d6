"""A broker in a process of its own, to be killed, paused, starved and started again on the same port and data.

It ends with the process that started it, however that ends.
"""

from __future__ import annotations

import http.client
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.process.free_port import free_port
from penstock.process.lifeline import CHILD_VARIABLE, DRILLED

READY_WITHIN_S = 180.0  # a machine with ten times more to do than it can
STOP_WITHIN_S = 60.0
BROKER = (sys.executable, "-c", "import sys; from penstock.cli.main import main; sys.exit(main())", "broker")
_READY = re.compile(rb"ready (\S+):(\d+)\n")


class BrokerProcess:
    """One broker after the other with the same address; everything they say is in `said`."""

    def __init__(
        self,
        data: Path,
        folder: Path,
        *,
        command: Sequence[str] = BROKER,
        prefix: Sequence[str] = (),
        settings: Mapping[str, object] | None = None,
        limits: Mapping[int, int] | None = None,
    ) -> None:
        """`prefix` is put before the command (strace …), `limits` are resource limits, `folder` keeps the output."""
        self.data = data
        self.port = free_port()
        self.metrics_port = free_port()
        self.prefix = prefix
        self.limits = dict(limits or {})
        self.settings = dict(settings or {})
        self.starts = 0
        self._command = command
        self._stdout = folder / "broker.out"
        self._stderr = folder / "broker.err"
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None  # its standard input ends with this process

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def target(self) -> KafkaTarget:
        """The same address, as our own clients take it."""
        return KafkaTarget.parse(self.address)

    @property
    def said(self) -> str:
        """What all of them wrote to standard error."""
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    @property
    def pid(self) -> int:
        """The broker's own process id, whatever the prefix is."""
        if not self.prefix:
            return self._running().pid
        pid = self._running().pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0])

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize()

    def start(self) -> None:
        """Start and wait until clients are served."""
        said = len(self.said)
        self._cut_lifeline()
        theirs, self._lifeline = os.pipe2(os.O_CLOEXEC)
        with os.fdopen(theirs) as stdin, self._stdout.open("wb") as out, self._stderr.open("ab") as err:
            self._process = subprocess.Popen(
                [*self.prefix, *self._command, *self._flags()],
                stdin=stdin,
                stdout=out,
                stderr=err,
                env={**os.environ, **self._environment()},
                start_new_session=True,
                preexec_fn=self._set_limits if self.limits else None,
            )
        deadline = time.monotonic() + READY_WITHIN_S
        while (ready := _READY.match(self._stdout.read_bytes())) is None:
            status = self._process.poll()
            if status is not None or time.monotonic() > deadline:
                self.kill()
                late = f"not ready within {READY_WITHIN_S:.0f} s" if status is None else f"exit status {status}"
                raise PenstockError(f"the broker did not start: {self.said[said:].strip() or late}")
            time.sleep(0.005)
        self.port = int(ready[2])
        self.starts += 1

    def _flags(self) -> list[str]:
        listen, metrics = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.metrics_port}"
        return ["--data", str(self.data), "--listen", listen, "--metrics", metrics]

    def _environment(self) -> dict[str, str]:
        settings = {f"PENSTOCK_BROKER_{name.upper()}": str(value) for name, value in self.settings.items()}
        return {**settings, CHILD_VARIABLE: DRILLED}

    def _set_limits(self) -> None:
        for kind, most in self.limits.items():
            resource.setrlimit(kind, (most, most))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise PenstockError("the broker was not started")
        return self._process

    def kill(self) -> None:
        """kill -9, with all its children; waits until it is gone."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._cut_lifeline()

    def _cut_lifeline(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def stop(self) -> int:
        """SIGTERM, as an operator stops it; the exit status."""
        process = self._running()
        os.kill(self.pid, signal.SIGTERM)
        try:
            return process.wait(STOP_WITHIN_S)
        finally:
            self.kill()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of GET `path` at the operator's port."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metric(self, name: str) -> int:
        """One number of /metrics, 0 if it is not there."""
        found = re.search(rf"^penstock_broker_{name} (\d+)$", self.get("/metrics")[1], re.MULTILINE)
        return int(found[1]) if found else 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
