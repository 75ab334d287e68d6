"""A siege: mutated frames, count bombs and a crowd of slow callers, while a normal client goes on.

python -m penstock.drills.siege --frames 1000000 --connections 5000 --seed 7
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.garbage import count_bomb, honest_requests, mutate
from penstock.drills.plain_client import PlainClient
from penstock.drills.pulse import Pulse
from penstock.drills.throwing import throw
from penstock.drills.topics import create_topic
from penstock.wire.apis import APIS

MIB = 1024 * 1024
TOPIC, UNHURT = "mutants", "unhurt"
# Garbage that makes sense by chance makes topics and groups: their limits keep that from looking like a leak.
SETTINGS = {"topics_max": 200, "partitions_max": 500, "groups_max": 500, "transactional_ids_max": 500}
GROWTH_MAX = 64 * MIB
TIMES_MAX = 2.0  # what the siege may cost a normal client's p99, beside the calm before and after it
_CALM_S = 10.0
_LORIS = b"\x00\x00\x10"  # the beginning of a length


class Phase(NamedTuple):
    """A part of the siege: from when to when, and the broker's memory at its end."""

    name: str
    from_s: float
    until_s: float
    resident_bytes: int


class Outcome(NamedTuple):
    """What a siege came to; calm is its first phase and its last."""

    frames: int
    phases: list[Phase]
    pulse: Pulse
    troubles: list[str]

    def times(self) -> tuple[float, float]:
        """The normal client's p99 in the whole siege, times that of the worse and of the better calm."""
        calm_ms = sorted((self._p99_ms(self.phases[0]), self._p99_ms(self.phases[-1])))
        siege_ms = self._p99_ms(*self.phases[1:-1])
        return siege_ms / calm_ms[1], siege_ms / calm_ms[0]

    def verdict(self) -> Result:
        """Whether the normal client is unhurt; unknown if one calm says so and the other not, as on a busy machine."""
        least, most = self.times()
        if most <= TIMES_MAX:
            return Result.VALID
        return Result.INVALID if least > TIMES_MAX else Result.UNKNOWN

    def lines(self) -> Iterator[str]:
        """One for each phase: the normal client's p99 and the broker's memory; then the verdict."""
        for phase in self.phases:
            took = f"{phase.until_s - phase.from_s:.0f} s"
            p99 = f"p99 of a normal client {self._p99_ms(phase):.2f} ms"
            yield f"{phase.name} ({took}): {p99}, memory {phase.resident_bytes / MIB:.1f} MiB"
        least, most = self.times()
        cost = f"its p99 in the siege is {least:.2f} to {most:.2f} times that of the calms beside it"
        yield f"a normal client is unhurt: {self.verdict()} ({cost}; at most {TIMES_MAX:.1f} is allowed)"

    def _p99_ms(self, *phases: Phase) -> float:
        return self.pulse.p99_ms([(phase.from_s, phase.until_s) for phase in phases])


class Siege:
    """One broker under siege; phases are told as they end."""

    def __init__(self, broker: BrokerProcess, seed: int, tell: Callable[[str], None]) -> None:
        self._broker = broker
        self._chance = random.Random(seed)
        self._tell = tell
        self._phases: list[Phase] = []

    def run(self, frames: int, connections: int, calm_s: float = _CALM_S, *, humbly: bool = False) -> Outcome:
        """Calm, then everything, then calm; HangError if a frame is neither answered nor refused.

        `humbly`: who besieges from elsewhere does not take the processor from broker and client, so this process
        gives way to them, for good.
        """
        broker, pid = self._broker, self._broker.pid
        create_topic(broker.address, TOPIC, 2)
        create_topic(broker.address, UNHURT)
        with Pulse(broker.port, UNHURT) as pulse:
            if humbly:
                os.nice(10)
            self._phase("calm before", lambda: time.sleep(calm_s))
            self._phase("count bombs", lambda: throw(broker.port, _bombs()))
            portion = max(frames // 10, 1)
            for first in range(0, frames, portion):
                count = min(portion, frames - first)
                self._phase(f"frames to {first + count:,}", partial(throw, broker.port, self._mutants(count)))
            self._phase(f"{connections:,} connections", lambda: self._crowd(connections, calm_s))
            self._phase("calm after", lambda: time.sleep(calm_s))
        return Outcome(frames, self._phases, pulse, list(self._troubles(pid)))

    def _phase(self, name: str, work: Callable[[], object]) -> None:
        begun = time.monotonic()
        work()
        self._phases.append(Phase(name, begun, time.monotonic(), self._broker.resident_bytes))
        self._tell(f"{name}: done in {time.monotonic() - begun:.1f} s")

    def _mutants(self, count: int) -> Iterator[bytes]:
        honest = list(honest_requests(self._chance, TOPIC))
        for number in range(count):
            yield mutate(self._chance, honest[number % len(honest)].frame)

    def _crowd(self, count: int, seconds: float) -> None:
        """Half of them say nothing, half begin a frame and never end it."""
        with ExitStack() as crowd:
            callers = [crowd.enter_context(PlainClient(self._broker.port)) for _ in range(count)]
            for caller in callers[::2]:
                caller.sock.sendall(_LORIS)
            time.sleep(seconds)

    def _troubles(self, pid: int) -> Iterator[str]:
        if not self._broker.is_running or self._broker.pid != pid:
            yield "the broker ended"
            return
        if "Traceback" in self._broker.said:
            yield "the broker's log has a traceback"
        if self._broker.get("/health")[0] != 200:
            yield "the broker says that it is not well"
        thrown = [phase.resident_bytes for phase in self._phases if phase.name.startswith("frames")]
        if thrown and thrown[-1] - thrown[0] > GROWTH_MAX:
            yield f"memory grew by {(thrown[-1] - thrown[0]) / MIB:.0f} MiB after the first tenth of the frames"


def _bombs() -> Iterator[bytes]:
    for key, api in APIS.items():
        for version in range(api.min_version, api.max_version + 1):
            yield count_bomb(key, version)


@click.command()
@click.option("--frames", default=1_000_000, show_default=True, help="Mutated frames of every API and version.")
@click.option("--connections", default=5_000, show_default=True, help="Callers at once that say nothing whole.")
@click.option("--seed", type=int, default=None, help="Repeats the same frames; by default others each time.")
def command(frames: int, connections: int, seed: int | None) -> None:
    """Besiege a broker, and say what a normal client felt of it."""
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="penstock-siege-"))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    click.echo(f"siege by {frames:,} frames and {connections:,} connections, seed {seed}, in {folder}")
    with BrokerProcess(folder / "data", folder, settings=SETTINGS) as broker:
        outcome = Siege(broker, seed, click.echo).run(frames, connections, humbly=True)
    for line in (*outcome.lines(), *(f"trouble: {trouble}" for trouble in outcome.troubles)):
        click.echo(line)
    if outcome.troubles or outcome.verdict() is Result.INVALID:
        click.echo(f"data and log are in {folder}; repeat: make siege FRAMES={frames} SEED={seed}")
        sys.exit(1)
    click.echo("no trouble: the same process, well, its memory flat")
    shutil.rmtree(folder)


if __name__ == "__main__":
    command()
