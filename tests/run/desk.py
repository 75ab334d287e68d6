"""`penstock demo` as a process, from whichever installation."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.process.free_port import free_port

READY_WITHIN_S = 240.0
STOP_WITHIN_S = 90.0


class Desk:
    """The fraud desk; everything that it says is in `said`."""

    def __init__(self, penstock: Sequence[str], folder: Path, *flags: str) -> None:
        self.port = free_port()
        self.queue = f"127.0.0.1:{free_port()}"
        self.data = folder / "data"
        self._folder = folder
        self._out = folder / "demo.out"
        own = ["--port", str(self.port), "--listen", self.queue, "--data", str(self.data)]
        self._command = [*penstock, "demo", *own, *flags]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def said(self) -> str:
        return self._out.read_text(errors="replace")

    def __enter__(self) -> Self:
        with self._out.open("wb") as out:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        deadline = time.monotonic() + READY_WITHIN_S
        while "Open http" not in self.said:
            assert self._process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.05)
        return self

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(STOP_WITHIN_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()  # its processes end with it
            self._process.wait()
