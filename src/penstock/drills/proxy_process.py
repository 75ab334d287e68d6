"""The proxy in a process of its own, to be killed, paused and started again on the same port."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.drills.proxy import HELD_BACK, SWALLOWED, LossyProxy
from penstock.errors import PenstockError

READY = "ready"
READY_WITHIN_S = 180.0  # a machine with ten times more to do than it can


class ProxyProcess:
    """One proxy after the other at `port`; what one was told, a line of JSON on its standard input, dies with it."""

    def __init__(self, folder: Path) -> None:
        # Bound and never listened on: while no proxy lives, nobody else gets the port, and clients are refused.
        self._kept = socket.socket()
        self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._kept.bind(("127.0.0.1", 0))
        self.port: int = self._kept.getsockname()[1]
        self.target_port = 0
        self._stdout = folder / "proxy.out"
        self._stderr = folder / "proxy.err"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def has_failed(self) -> bool:
        """Whether it ended and nobody killed it."""
        return self._process is not None and self._process.poll() is not None

    @property
    def said(self) -> str:
        """What all of them wrote to standard error."""
        return self._stderr.read_text(errors="replace") if self._stderr.exists() else ""

    @property
    def swallowed(self) -> int:
        return self._count(SWALLOWED)

    @property
    def held_back(self) -> int:
        return self._count(HELD_BACK)

    def _count(self, line: str) -> int:
        return self._stdout.read_text().splitlines().count(line) if self._stdout.exists() else 0

    def start(self) -> None:
        """Start and wait until clients are let through to `target_port`."""
        wanted = self._count(READY) + 1
        command = [sys.executable, "-m", "penstock.drills.proxy_process", str(self.target_port), str(self.port)]
        with self._stdout.open("ab") as out, self._stderr.open("ab") as err:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=err, start_new_session=True
            )
        deadline = time.monotonic() + READY_WITHIN_S
        while self._count(READY) < wanted:
            if self._process.poll() is not None or time.monotonic() > deadline:
                why = self.said.strip() or f"not ready within {READY_WITHIN_S:.0f} s"
                self.kill()
                raise PenstockError(f"the proxy did not start: {why}")
            time.sleep(0.005)

    def kill(self) -> None:
        """kill -9: all connections end, and nobody listens any more."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def pause(self) -> bool:
        """Whether it was there to be paused."""
        return self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> bool:
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.send_signal(number)
        return True

    def tell(self, command: str, *arguments: float) -> bool:
        """Call a method of the proxy; whether it lives to hear it: one that is paused hears it when it wakes."""
        if self._process is None or self._process.stdin is None or self._process.poll() is not None:
            return False
        with suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), json.dumps([command, *arguments]).encode() + b"\n")
            return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._kept.close()


def main(target_port: str, port: str) -> None:
    """Pass frames on and do what is said on standard input, until that ends."""
    with LossyProxy(int(target_port), int(port), tell=_say) as proxy:
        commands = {
            each.__name__: each
            for each in (
                proxy.swallow, proxy.delay, proxy.hold, proxy.cut, proxy.close_gate, proxy.open_gate, proxy.calm,
            )
        }  # fmt: skip
        _say(READY)
        for line in sys.stdin:
            command, *arguments = json.loads(line)
            commands[command](*arguments)


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
