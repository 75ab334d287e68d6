"""The clients of the storm, each in a process of its own, to be killed, frozen, sent away and called back."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from proof import child_environ
from proof.storm.client import BEGINS_ANEW, SIGNALS

BACK_AFTER_S = 0.3
WAKE_EVERY_S = 0.1


class Part(NamedTuple):
    """Who plays what."""

    name: str
    role: str
    kind: str


FULL = (
    Part("writer-c", "writer", "confluent"),
    Part("writer-k", "writer", "kafka_python"),
    Part("writer-a", "writer", "aio"),
    Part("owner-c", "owner", "confluent"),
    Part("owner-k", "owner", "kafka_python"),
    Part("owner-a", "owner", "aio"),
    Part("classic-c", "classic", "confluent"),
    Part("classic-k", "classic", "kafka_python"),
    Part("classic-a", "classic", "aio"),
    Part("newer-1", "newer", "confluent"),
    Part("newer-2", "newer", "confluent"),
    Part("copier-1", "copier", "confluent"),
    Part("copier-2", "copier", "confluent"),
    Part("copier-k", "copier-0", "kafka_python"),
    Part("copier-a", "copier-1", "aio"),
    Part("follower-c", "follower-committed", "confluent"),
    Part("follower-k", "follower-committed", "kafka_python"),
    Part("administrator", "administrator", "confluent"),
)


class Player:
    """One client, life after life."""

    def __init__(self, part: Part, address: str, folder: Path, seed: int) -> None:
        self.part = part
        self.lives = 0
        self.gave_up = 0
        self.back_at: float | None = 0.0
        self._arguments = (address, str(folder), str(seed))
        self._said = folder / f"{part.name}.err"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        return self._process is not None

    @property
    def said(self) -> list[str]:
        """What its lives wrote, each why it ended."""
        return self._said.read_text(errors="replace").splitlines() if self._said.exists() else []

    @property
    def troubles(self) -> list[str]:
        """What no client should ever have to say; owners are fenced when they come back late, producers never."""
        is_writer = self.part.role == "writer"
        return [line for line in self.said if line.startswith("trouble") or (is_writer and "fatal" in line)]

    def tend(self, now: float) -> None:
        """Notice that a life ended, and begin the next when it is time."""
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return
            self._forget(self._process)
            self.gave_up += status not in (0, BEGINS_ANEW, -signal.SIGKILL)
            if self.back_at is None:
                self.back_at = now + BACK_AFTER_S
        if self.back_at is not None and now >= self.back_at:
            self.back_at = None
            self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "proof.storm.client", self.part.role, self.part.kind]
        # Inherited: a signal waits until the client can hear it, instead of ending one that has just begun.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            with self._said.open("ab") as err:
                self._process = subprocess.Popen(
                    [*command, self.part.name, str(self.lives), *self._arguments],
                    stdin=subprocess.PIPE, stdout=err, stderr=err, start_new_session=True, env=child_environ(),
                )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.lives += 1

    def signal(self, number: int) -> bool:
        """Whether it lives to hear it."""
        if self._process is None or self._process.poll() is not None:
            return False
        self._process.send_signal(number)
        return True

    def end(self, within_s: float) -> None:
        """Wait for an end that was asked for; kill -9 if it does not come."""
        process = self._process
        if process is None:
            return
        try:
            process.wait(max(0.0, within_s))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._forget(process)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        if process.stdin is not None:
            process.stdin.close()


class Cast:
    """All players."""

    def __init__(self, parts: Sequence[Part], address: str, folder: Path, seed: int) -> None:
        self.players = {part.name: Player(part, address, folder, seed) for part in parts}

    def tend(self) -> None:
        now = time.monotonic()
        for player in self.players.values():
            player.tend(now)

    def wake(self) -> None:
        for player in self.players.values():
            player.signal(signal.SIGCONT)

    def dismiss(self, *roles: str, within_s: float = 90.0) -> None:
        """Those who play one of these roles end, and do not come back."""
        leaving = [player for player in self.players.values() if player.part.role.partition("-")[0] in roles]
        for player in leaving:
            player.signal(signal.SIGTERM)
        deadline = time.monotonic() + within_s
        # Who was told to stand still a moment ago may do so only now.
        while sum(player.signal(signal.SIGCONT) for player in leaving) and time.monotonic() < deadline:
            time.sleep(WAKE_EVERY_S)
        for player in leaving:
            player.end(deadline - time.monotonic())
            player.back_at = float("inf")

    def kill(self) -> None:
        for player in self.players.values():
            player.signal(signal.SIGKILL)
            player.end(10)
