"""A whole app in processes of its own, to be killed part by part and started again on the same ports and data."""

from __future__ import annotations

import os
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
from penstock.process.free_port import free_port

READY_WITHIN_S = 180.0
STOP_WITHIN_S = 90.0
GONE_WITHIN_S = 20.0
PARTS = {
    "broker": "penstock broker",
    "edge": "penstock.edge",
    "analyze": "penstock.analyze",
    "jvm": "org.apache.spark",
}
SUPERVISOR = "supervisor"


class OrphansError(PenstockError):
    """Somebody lives on whose parent is gone."""


class AppProcess:
    """`penstock run APP`, again and again; everything it says is in `said`."""

    def __init__(
        self, app: str, folder: Path, *, flags: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        self.data = folder / "data"
        self.port = free_port()
        self.queue = f"127.0.0.1:{free_port()}"
        self.starts = 0
        self._flags = flags
        self._app = app
        self._out = folder / "run.out"
        self._environ = {**os.environ, **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def said(self) -> str:
        """What all runs wrote."""
        return self._out.read_text(errors="replace") if self._out.exists() else ""

    @property
    def pid(self) -> int:
        if self._process is None:
            raise PenstockError("the app was not started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, ready: bool = True) -> None:
        """Start it, and wait until all of it serves."""
        began = len(self.said)
        listen = [] if "--queue" in self._flags else ["--listen", self.queue]
        command = [sys.executable, "-m", "penstock", "run", self._app, "--data", str(self.data)]
        with self._out.open("ab") as out:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port), *listen, *self._flags],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self._environ,
                start_new_session=True,
            )
        self.starts += 1
        deadline = time.monotonic() + READY_WITHIN_S
        while ready and "\nready http" not in self.said[began:]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self.said[began:]
                self.kill()
                raise PenstockError(f"the app did not start: {said}")
            time.sleep(0.02)

    def parts(self) -> dict[str, int]:
        """The processes that run now, by name."""
        found: dict[str, int] = {}
        for pid in descendants(self.pid):
            line = command_line(pid)
            for name, mark in PARTS.items():
                if mark in line:
                    found.setdefault(name, pid)
                    break
        return found

    def kill_part(self, name: str) -> bool:
        """kill -9 of one part; False if it does not run at the moment."""
        if name == SUPERVISOR:
            self.kill_supervisor()
            return True
        pid = self.parts().get(name)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return True

    def kill_supervisor(self) -> None:
        """kill -9 of the supervisor alone: whatever it had started must end by itself."""
        family = descendants(self.pid)
        self._end(signal.SIGKILL)
        _wait_gone(family)

    def stop(self) -> int:
        """SIGTERM, as an operator stops it; the exit status."""
        family = descendants(self.pid)
        status = self._end(signal.SIGTERM)
        _wait_gone(family)
        return status

    def kill(self) -> None:
        """End everything at once."""
        if self._process is None:
            return
        for pid in [self._process.pid, *descendants(self._process.pid)]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def _end(self, how: signal.Signals) -> int:
        process = self._process
        if process is None:
            raise PenstockError("the app was not started")
        process.send_signal(how)
        try:
            return process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise PenstockError(f"the app did not end within {STOP_WITHIN_S:.0f} s") from None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def descendants(pid: int) -> list[int]:
    """All processes below `pid`."""
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                children = [int(c) for c in Path(f"/proc/{parent}/task/{task}/children").read_text().split()]
                found += children
                todo += children
    return found


def command_line(pid: int) -> str:
    """How a process was started; empty once it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _wait_gone(family: list[int]) -> None:
    """OrphansError names whoever lives on."""
    deadline = time.monotonic() + GONE_WITHIN_S
    while left := [pid for pid in family if _is_alive(pid)]:
        if time.monotonic() > deadline:
            raise OrphansError(f"orphans live on: {[(pid, command_line(pid)[:200]) for pid in left]}")
        time.sleep(0.02)


def _is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
