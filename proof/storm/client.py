"""One client of the storm in a process of its own: python -m proof.storm.client ROLE KIND NAME LIFE …"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Protocol

from penstock.drills.recording_clients import Place
from penstock.process.lifeline import die_with_parent
from proof.storm.administrator import Administrator
from proof.storm.client_library import face_of
from proof.storm.recording import StampedRecorder
from proof.storm.roles import RECORDS, Copier, Follower, Freeze, Member, Owner, Restart, Task, Writer

CLASSIC, NEWER, COPYING = "classic", "newer", "copying"
TURN_S_MAX, FINISH_S_MAX = 20.0, 75.0
GAVE_UP, BEGINS_ANEW = 1, 3
SIGNALS = (signal.SIGTERM, signal.SIGUSR1)  # blocked by whoever starts a client, until it can hear them


class Patience:
    """Ends this life when a call takes too long: some calls of clients hang in C, where no signal is heard."""

    def __init__(self, who: str) -> None:
        self._who = who
        self._until = float("inf")
        threading.Thread(target=self._watch, name="patience", daemon=True).start()

    @contextmanager
    def of(self, seconds: float) -> Iterator[None]:
        self._until = time.monotonic() + seconds
        yield
        self._until = float("inf")

    def _watch(self) -> None:
        while time.monotonic() < self._until:
            time.sleep(0.5)
        sys.stderr.write(f"{self._who}: a call hangs\n")
        sys.stderr.flush()
        os._exit(GAVE_UP)


class Role(Protocol):
    """What a client does again and again, until it is told to stop."""

    def turn(self) -> None: ...

    def finish(self) -> None:
        """Bring to an end what is under way."""


def role_of(role: str, task: Task) -> Role:
    """A role takes up its work; `copier-2` copies partition 2 alone."""
    match role.split("-"):
        case ["writer"]:
            return Writer(task)
        case ["owner"]:
            return Owner(task)
        case ["classic"]:
            return Member(task, CLASSIC, committed=False)
        case ["newer"]:
            return Member(task, NEWER, committed=True, newer=True)
        case ["follower", isolation]:
            return Follower(task, committed=isolation == "committed")
        case ["copier"]:
            return Copier(task, COPYING, None)
        case ["copier", partition]:
            return Copier(task, f"{COPYING}-{partition}", Place(RECORDS, int(partition)))
        case ["administrator"]:
            return Administrator(task)
    raise ValueError(f"nobody plays {role}")


def main(role: str, kind: str, name: str, life: str, address: str, folder: str, seed: str) -> int:
    """Play until SIGTERM; the exit status says whether this life ended well."""
    logging.disable(logging.CRITICAL)
    stopping: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopping.append(number)

    signal.signal(signal.SIGTERM, stop)
    freeze = Freeze()
    signal.signal(signal.SIGUSR1, lambda _, __: freeze.ask())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    patience = Patience(f"{name}.{life}")
    recorder = StampedRecorder(Path(folder) / f"{name}.{life}.jsonl")
    chance = random.Random(f"{seed}/{name}/{life}")
    try:
        with patience.of(TURN_S_MAX):
            player = role_of(role, Task(face_of(kind), address, name, int(life), chance, recorder, freeze))
        while not stopping:
            with patience.of(TURN_S_MAX):
                player.turn()
        with patience.of(FINISH_S_MAX):
            player.finish()
    except Restart:
        return BEGINS_ANEW
    except Exception as error:  # noqa: BLE001  # the top of a process: clients raise what they like, and begin anew
        sys.stderr.write(f"{name}.{life}: {type(error).__name__}: {error}\n")
        return GAVE_UP
    return 0


if __name__ == "__main__":
    die_with_parent()
    status = main(*sys.argv[1:])
    sys.stderr.flush()
    # Threads of clients that wait for a broker must not keep a life from ending.
    os._exit(status)
