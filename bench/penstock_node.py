"""Our broker as a process of its own, used like KafkaNode."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from penstock.errors import PenstockError
from penstock.process.free_port import free_port

_STOP_DEADLINE_S = 30.0


class PenstockNode:
    """`penstock broker` on `folder`; `started_at` is the monotonic time at which the process was asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self.started_at = 0.0

    @property
    def pid(self) -> int:
        """The process id of the running broker."""
        if self._process is None:
            raise PenstockError("our broker does not run")
        return self._process.pid

    @property
    def log_folder(self) -> Path:
        """Where the partitions lie."""
        return self._folder / "data"

    def start(self) -> None:
        """Start on the data that is there; returns when it says it is ready."""
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [str(Path(sys.executable).with_name("penstock")), "broker"]
        command += ["--data", str(self.log_folder), "--listen", f"127.0.0.1:{free_port()}"]
        with (self._folder / "broker.log").open("ab") as log:
            self.started_at = time.monotonic()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self._folder
            )
        self._process = process
        self.address = self._ready_address(process)

    def stop(self) -> None:
        """Ask it to end; killed if it does not within the deadline."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def _ready_address(self, process: subprocess.Popen[str]) -> str:
        for line in process.stdout or ():
            word, _, address = line.strip().partition(" ")
            if word == "ready":
                return address
        status = process.wait()
        last_words = (self._folder / "broker.log").read_text(errors="replace")[-2000:]
        raise PenstockError(f"our broker ended with status {status} at its start: {last_words}")
