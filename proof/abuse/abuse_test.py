"""A siege: mutated frames, count bombs and a crowd of slow callers, while a normal client goes on.

python -m proof.abuse.abuse_test --frames 1000000 --connections 5000 --seed 7
"""

from __future__ import annotations

import math
import os
import random
import selectors
import shutil
import socket
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
from penstock.drills.exit_status import FAILED, STATUS
from penstock.drills.recording_clients import create_topic
from penstock.errors import PenstockError
from penstock.kafka.wire.apis import APIS
from penstock.process.file_handles import take_handles
from penstock.process.lifeline import exit_when_told
from proof.abuse.latency_probe import Pulse
from proof.abuse.malformed_frames import count_bomb, honest_requests, mutate
from proof.abuse.raw_client import DEADLINE_S, PlainClient

AT_ONCE = 8


class HangError(PenstockError):
    """The broker neither answered a frame nor closed its connection."""

    def __init__(self, frame: bytes) -> None:
        super().__init__(f"the broker hangs on {frame.hex()}")
        self.frame = frame


def throw(port: int, frames: Iterator[bytes], at_once: int = AT_ONCE) -> int:
    """Throw them all, and wait until the broker has closed every connection; how many. HangError."""
    thrown = 0
    under_way: dict[socket.socket, tuple[PlainClient, bytes, float]] = {}
    with selectors.DefaultSelector() as selector:
        try:
            for frame in frames:
                thrown += 1
                client = _thrown(port, frame)
                if client is not None:
                    under_way[client.sock] = client, frame, time.monotonic() + DEADLINE_S
                    selector.register(client.sock, selectors.EVENT_READ)
                while len(under_way) >= at_once:
                    _take(selector, under_way)
            while under_way:
                _take(selector, under_way)
        finally:
            for client, _, _ in under_way.values():
                client.close()
    return thrown


def _thrown(port: int, frame: bytes) -> PlainClient | None:
    """A connection with a frame on its way and nothing to follow; None if the broker has closed it already."""
    client = PlainClient(port)
    try:
        client.send(frame)
        client.sock.shutdown(socket.SHUT_WR)
    except OSError:
        client.close()
        return None
    client.sock.setblocking(False)
    return client


def _take(selector: selectors.BaseSelector, under_way: dict[socket.socket, tuple[PlainClient, bytes, float]]) -> None:
    """Read what has come; connections that the broker closed are done."""
    for key, _ in selector.select(1.0):
        sock = key.fileobj
        if not isinstance(sock, socket.socket) or not _is_over(sock):
            continue
        selector.unregister(sock)
        under_way.pop(sock)[0].close()
    if under_way:
        _, frame, deadline = next(iter(under_way.values()))
        if time.monotonic() > deadline:
            raise HangError(frame)


def _is_over(sock: socket.socket) -> bool:
    try:
        while sock.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


MIB = 1024 * 1024
TOPIC, UNHURT = "mutants", "unhurt"
# Garbage that makes sense by chance makes topics and groups: their limits keep that from looking like a leak.
SETTINGS = {"topics_max": 200, "partitions_max": 500, "groups_max": 500, "transactional_ids_max": 500}
GROWTH_MAX = 64 * MIB
TIMES_MAX = 2.0  # what the siege may cost a normal client's p99, beside the calms between its phases
PORTION_MIN = 5_000  # a phase of a few frames has too few beats for a p99
_CALM_S = 10.0
_PHASE_CALMS = 3  # a phase without frames is so many times as long as a calm: one hiccup must not be its p99
_LORIS = b"\x00\x00\x10"  # the beginning of a length


class Phase(NamedTuple):
    """A part of the siege: from when to when, and the broker's memory at its end."""

    name: str
    from_s: float
    until_s: float
    resident_bytes: int
    is_calm: bool = False


class Outcome(NamedTuple):
    """What a siege came to; before and after each of its phases there is a calm."""

    frames: int
    phases: list[Phase]
    pulse: Pulse
    disk: Pulse
    troubles: list[str]

    def times(self) -> tuple[float, float]:
        """The normal client's p99 in the worst phase of the siege, times that of a worse and of a better calm.

        NaN if no phase, or not every calm, has one.
        """
        better_ms, worse_ms = self._calms_ms()
        sieges_ms = (self._p99_ms(phase) for phase in self.phases if not phase.is_calm)
        siege_ms = max((known for known in sieges_ms if not math.isnan(known)), default=math.nan)
        return siege_ms / worse_ms, siege_ms / better_ms

    def verdict(self) -> Result:
        """Whether the normal client is unhurt in every phase.

        Unknown if the calms do not agree, as on a busy machine, if a phase has too few beats, or if it looks hurt
        beside a calm that looks so, too, or while the disk was as slow without the broker.
        """
        if self.pulse.is_lost:
            return Result.INVALID
        found = [self._judged(at) for at, phase in enumerate(self.phases) if not phase.is_calm]
        return next((worst for worst in (Result.INVALID, Result.UNKNOWN) if worst in found), Result.VALID)

    def _judged(self, at: int) -> Result:
        phase_ms = self._p99_ms(self.phases[at])
        better_ms, worse_ms = self._calms_ms()
        if phase_ms <= TIMES_MAX * better_ms and worse_ms <= TIMES_MAX * better_ms:
            return Result.VALID
        beside = [self._p99_ms(phase) for phase in self.phases[at - 1 : at + 2] if phase.is_calm]
        bound_ms = TIMES_MAX * max((worse_ms, *beside))
        is_disks = phase_ms - self._disk_p99_ms(self.phases[at]) <= bound_ms  # never, if the disk has no p99
        return Result.INVALID if phase_ms > bound_ms and not is_disks else Result.UNKNOWN

    def lines(self) -> Iterator[str]:
        """One for each phase: the p99 of the normal client and of the disk, the broker's memory; then the verdict."""
        for phase in self.phases:
            took = f"{phase.until_s - phase.from_s:.0f} s"
            p99 = f"p99 of a normal client {self._p99_ms(phase):.2f} ms"
            disk = f"of the disk without the broker {self._disk_p99_ms(phase):.2f} ms"
            yield f"{phase.name} ({took}): {p99}, {disk}, memory {phase.resident_bytes / MIB:.1f} MiB"
        least, most = self.times()
        cost = f"its p99 in the worst phase is {least:.2f} to {most:.2f} times that of the calms"
        yield f"a normal client is unhurt: {self.verdict()} ({cost}; at most {TIMES_MAX:.1f} is allowed)"

    def _calms_ms(self) -> tuple[float, float]:
        """A better one and a worse one, with a quarter of all beyond each: one hiccup of a machine decides nothing.

        Better is also the first: only that one cannot have been hurt by what came before it.
        """
        calms_ms = [self._p99_ms(phase) for phase in self.phases if phase.is_calm]
        if any(map(math.isnan, calms_ms)):
            return math.nan, math.nan
        first_ms, beyond = calms_ms[0], (len(calms_ms) - 1) // 4
        calms_ms.sort()
        return min(first_ms, calms_ms[beyond]), calms_ms[-1 - beyond]

    def _p99_ms(self, phase: Phase) -> float:
        return self.pulse.p99_ms(phase.from_s, phase.until_s)

    def _disk_p99_ms(self, phase: Phase) -> float:
        return self.disk.p99_ms(phase.from_s, phase.until_s)


class Siege:
    """One broker under siege; phases are told as they end."""

    def __init__(self, broker: BrokerProcess, seed: int, tell: Callable[[str], None]) -> None:
        self._broker = broker
        self._chance = random.Random(seed)
        self._tell = tell
        self._phases: list[Phase] = []

    def run(self, frames: int, connections: int, calm_s: float = _CALM_S, *, humbly: bool = False) -> Outcome:
        """Everything, with a calm before, between and after; HangError if a frame is neither answered nor refused.

        `humbly`: who besieges from elsewhere does not take the processor from broker and client, so this process
        gives way to them, for good.
        """
        broker, pid = self._broker, self._broker.pid
        create_topic(broker.address, TOPIC, 2)
        create_topic(broker.address, UNHURT)
        with Pulse.of_disk(broker.data.parent) as disk, Pulse.of_client(broker.port, UNHURT) as pulse:
            if humbly:
                os.nice(10)
            self._calm(calm_s)
            self._phase("count bombs", lambda: throw(broker.port, _bombs(_PHASE_CALMS * calm_s)), calm_s)
            portion = max(frames // 10, PORTION_MIN)
            for first in range(0, frames, portion):
                count = min(portion, frames - first)
                mutants = self._mutants(count)
                self._phase(f"frames to {first + count:,}", partial(throw, broker.port, mutants), calm_s)
            self._phase(f"{connections:,} connections", lambda: self._crowd(connections, _PHASE_CALMS * calm_s), calm_s)
        return Outcome(frames, self._phases, pulse, disk, [*self._troubles(pid), *self._losses(pulse)])

    def _phase(self, name: str, work: Callable[[], object], calm_s: float) -> None:
        self._watch(name, work)
        self._calm(calm_s)

    def _calm(self, calm_s: float) -> None:
        self._watch("calm", lambda: time.sleep(calm_s), is_calm=True)

    def _watch(self, name: str, work: Callable[[], object], *, is_calm: bool = False) -> None:
        begun = time.monotonic()
        work()
        self._phases.append(Phase(name, begun, time.monotonic(), self._broker.resident_bytes, is_calm))
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

    def _losses(self, pulse: Pulse) -> Iterator[str]:
        if pulse.is_lost:
            yield "the normal client was refused or lost its connection"

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


def _bombs(seconds: float) -> Iterator[bytes]:
    """One for each version of each API, and again, for so long: a p99 needs its time."""
    until = time.monotonic() + seconds
    while True:
        for key, api in APIS.items():
            for version in range(api.min_version, api.max_version + 1):
                yield count_bomb(key, version)
        if time.monotonic() >= until:
            return


@click.command()
@click.option("--frames", type=click.IntRange(0), default=1_000_000, show_default=True, 
              help="Mutated frames of every API and version.")  # fmt: skip
@click.option("--connections", type=click.IntRange(0), default=5_000, show_default=True,
              help="Callers at once that say nothing whole.")  # fmt: skip
@click.option("--seed", type=int, default=None, help="Repeats the same frames; by default others each time.")
def command(frames: int, connections: int, seed: int | None) -> None:
    """Besiege a broker, and say what a normal client felt of it."""
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="penstock-siege-"))
    take_handles(connections)
    click.echo(f"siege by {frames:,} frames and {connections:,} connections, seed {seed}, in {folder}")
    repeat = f"data and log are in {folder}; repeat: make siege FRAMES={frames} SEED={seed}"
    try:
        with BrokerProcess(folder / "data", folder, settings=SETTINGS) as broker:
            outcome = Siege(broker, seed, click.echo).run(frames, connections, humbly=True)
    except (PenstockError, OSError) as broken:
        click.echo(f"the siege could not be brought to its end: {broken}\n{repeat}")
        sys.exit(FAILED)
    for line in (*outcome.lines(), *(f"trouble: {trouble}" for trouble in outcome.troubles)):
        click.echo(line)
    if not outcome.troubles:
        click.echo("no trouble: the same process, well, its memory flat")
    if status := STATUS[outcome.verdict()] or (FAILED if outcome.troubles else 0):
        click.echo(repeat)
        sys.exit(status)
    shutil.rmtree(folder)


if __name__ == "__main__":
    exit_when_told()
    command()
