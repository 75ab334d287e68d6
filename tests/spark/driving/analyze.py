"""A process that runs an app's queries, to be watched, killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.client.topics import provide_topics
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.planner import plan_app
from penstock.plan.run_spec import RunSpec
from penstock.plan.topics import wanted_topics
from penstock.process.app_loader import load_app
from penstock.process.run_spec_file import write_spec

WITHIN_S = 240.0
APPS = Path(__file__).parent.parent / "apps"


class Analyze:
    """One run after the other on the same data."""

    def __init__(self, app: str, queue: str, data: Path, kind: Queue | None = None, **settings: Any) -> None:
        self.data = data
        self.lines: list[str] = []
        self._spec = data / "run" / "spec.json"
        kind = kind or Queue()
        file = str(APPS / app)
        config = AnalyzeConfig(**{"ui": False, "dead_letters_every_ms": 1_000, **settings})
        target = KafkaTarget.parse(queue)
        write_spec(
            RunSpec(app=file, data=str(data), queue=target, kind=kind, edge=EdgeConfig(), analyze=config),
            self._spec,
        )
        self._queue = target
        self._topics = list(wanted_topics(plan_app(load_app(file), kind)))
        self.prepare()
        self._heard = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None

    def prepare(self) -> None:
        """Make the topics that are missing, as the supervisor does."""
        provide_topics(self._queue, self._topics)

    @property
    def process(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process

    @property
    def children(self) -> list[int]:
        """The JVM, and whatever it started."""
        found, waiting = [], [self.process.pid]
        while waiting:
            pid = waiting.pop()
            listed = subprocess.run(
                ["ps", "--ppid", str(pid), "-o", "pid="], capture_output=True, text=True, check=False
            )
            waiting += (below := [int(word) for word in listed.stdout.split()])
            found += below
        return found

    @property
    def said(self) -> str:
        """What it wrote to standard error."""
        return (self.data / "analyze.err").read_text()

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.launch()
        self.wait_for_line(lambda line: line.startswith("ready"))

    def launch(self) -> None:
        self.lines = []
        with (self.data / "analyze.err").open("w") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock.analyze", str(self._spec)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True,
            )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, args=[self._process, self.lines], daemon=True)
        self._listener.start()

    def _listen(self, process: subprocess.Popen[str], lines: list[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                with self._heard:
                    lines.append(line.rstrip("\n"))
                    self._heard.notify_all()
        process.wait()
        with self._heard:
            self._heard.notify_all()

    def wait_for_line(self, wanted: Callable[[str], bool]) -> str:
        """The first line said that is wanted, from now or before."""
        with self._heard:
            done = self._heard.wait_for(
                lambda: any(map(wanted, self.lines)) or self.process.poll() is not None, WITHIN_S
            )
            found = next(filter(wanted, self.lines), None)
            assert done, f"not within {WITHIN_S} s: {self.lines}"
            assert found is not None, f"{self.lines}\n{self.said}"
            return found

    def kill(self) -> None:
        """kill -9 of the driver alone."""
        self.process.send_signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """SIGTERM, as the supervisor stops it."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Its exit status, once it ends by itself."""
        status = self.process.wait(WITHIN_S)
        self._close()
        return status

    def _close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self._listener is not None:
            self._listener.join(WITHIN_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Kill it if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


def until_gone(pids: list[int]) -> None:
    """Wait until none of these processes lives."""
    deadline = time.monotonic() + WITHIN_S
    while any(_lives(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still there: {pids}"
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
