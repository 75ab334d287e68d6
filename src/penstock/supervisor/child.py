"""One child process of the supervisor: its lines, its end, and its start again.

The log of a child, DATA/logs/NAME.log, has everything that the child prints, and a line for each start and each end.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.process.lifeline import CHILD_VARIABLE
from penstock.process.log_lines import text_of_line
from penstock.process.supervisor_orders import OPEN

FIRST_MS, LONGEST_MS = 100, 10_000
CALM_MS = 30_000  # a child that lived this long had a reason of its own to end


class Restarts:
    """One child's delays; time is told, not asked for."""

    def __init__(self) -> None:
        self._delay_ms = FIRST_MS

    def next_delay_ms(self, lived_ms: int) -> int:
        """How long to wait before the next start of a child that lived for `lived_ms`."""
        if lived_ms >= CALM_MS:
            self._delay_ms = FIRST_MS
        delay_ms, self._delay_ms = self._delay_ms, min(self._delay_ms * 2, LONGEST_MS)
        return delay_ms


LOG_BYTES_MAX = 8 * 1024 * 1024
STOP_DEADLINE_S = 20.0
WRONG_CONFIGURATION = 2
_SENTENCE = "penstock: "
_LINE_BYTES_MAX = 1024 * 1024
_SETTLING_S = 5.0  # what the last run's children held (ports, locks) is free by then

Say = Callable[[str, str], None]


class Child:
    """Kept alive by `keep`, ended by `stop`."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, say: Say, *, opens: asyncio.Event | None = None
    ) -> None:
        """`opens`: when it is set, the child is told to open its doors."""
        self.name = name
        self.is_ready = asyncio.Event()
        self.is_checked = asyncio.Event()  # said so, or ended for another reason than its configuration
        self._opens = opens
        self._command = command
        self._log = folder / f"{name}.log"
        self._log.touch()
        self._say = say
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._last_words: deque[str] = deque(maxlen=100)
        self._is_stopping = False
        self._was_ready = False

    async def keep(self, may_run: Callable[[], Awaitable[None]] | None = None) -> list[str]:
        """Run it, and start it again whenever it ends, until `stop`; or return why its configuration is wrong."""
        restarts, loop = Restarts(), asyncio.get_running_loop()
        began = loop.time()
        while not self._is_stopping:
            if may_run is not None:
                await may_run()
            started = loop.time()
            status = await self._run_once()
            if self._is_stopping:
                break
            if status == WRONG_CONFIGURATION and not self._was_ready and loop.time() - began > _SETTLING_S:
                return self._sentences() or [f"{self.name} {_ending(status)}: see {self._log}"]
            delay_ms = restarts.next_delay_ms(int((loop.time() - started) * 1000))
            if self._was_ready or status != WRONG_CONFIGURATION:
                self._say(self.name, f"{_ending(status)}; starts again (log: {self._log})")
            await asyncio.sleep(delay_ms / 1000)
        return []

    def _sentences(self) -> list[str]:
        """What it said to people before it ended; the rest of its log is for whoever looks there."""
        return [line.removeprefix(_SENTENCE) for line in self._last_words if line.startswith(_SENTENCE)]

    async def _run_once(self) -> int:
        self.is_ready.clear()
        self._last_words.clear()
        environ = {**os.environ, CHILD_VARIABLE: self.name, "PYTHONUNBUFFERED": "1"}
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environ,
            limit=_LINE_BYTES_MAX,
            start_new_session=True,  # Ctrl-C is for the supervisor, which then stops them in order
        )
        started = asyncio.get_running_loop().time()
        self._write_log(text_of_line("info", "process started", name=self.name, pid=self._process.pid))
        if self._is_stopping:
            self._process.terminate()
        self._readers = [asyncio.create_task(self._read_words()), asyncio.create_task(self._read_log())]
        opening = asyncio.create_task(self._tell_to_open())
        status = await self._process.wait()
        opening.cancel()
        # A grandchild may hold the pipes a moment longer than the child.
        await asyncio.wait(self._readers, timeout=1.0)
        for reader in self._readers:
            reader.cancel()
        lived_s = round(asyncio.get_running_loop().time() - started, 1)
        level = "info" if self._is_stopping else "error"
        ended = text_of_line(level, "process ended", pid=self._process.pid, how=_ending(status), lived_s=lived_s)
        self._write_log(ended, may_rotate=False)  # the last output stands before it in the same file
        self.is_ready.clear()
        if status != WRONG_CONFIGURATION:
            self.is_checked.set()
        return status

    async def _tell_to_open(self) -> None:
        if self._opens is None:
            return
        await self._opens.wait()
        self.tell(OPEN)

    def tell(self, order: str) -> None:
        """Write a line to the child's standard input; without effect while it does not run."""
        process = self._process
        if process is not None and process.returncode is None and process.stdin is not None:
            process.stdin.write(order.encode() + b"\n")

    def kill(self) -> None:
        """End it at once, and do not start it again."""
        self._is_stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _read_words(self) -> None:
        async for line in _lines(self._process.stdout if self._process else None):
            if line:
                self._write_log(text_of_line("info", line))
            if line == "ready" or line.startswith("ready "):
                self._was_ready = True
                self.is_ready.set()
                self._say(self.name, line)
            elif line:
                if line.startswith("checked: "):
                    self.is_checked.set()
                self._say(self.name, line)

    async def _read_log(self) -> None:
        async for line in _lines(self._process.stderr if self._process else None):
            self._last_words.append(line)
            self._write_log(line)

    def _write_log(self, line: str, *, may_rotate: bool = True) -> None:
        with suppress(OSError):  # a full disk must not stop the supervisor
            if may_rotate and self._log.exists() and self._log.stat().st_size > LOG_BYTES_MAX:
                os.replace(self._log, self._log.with_suffix(".log.1"))
            with self._log.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    async def stop(self) -> None:
        """Ask it to end, then make it."""
        self._is_stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_DEADLINE_S)
        except TimeoutError:
            self._say(self.name, f"did not end within {STOP_DEADLINE_S:.0f} s: killed")
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _lines(stream: asyncio.StreamReader | None) -> AsyncIterator[str]:
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:
            continue  # longer than any line that makes sense: skipped by the reader itself
        if not line:
            return
        yield line.decode("utf-8", "replace").rstrip("\n")


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"
