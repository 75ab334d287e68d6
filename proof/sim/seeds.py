"""Many seeds: run each, and say of the first that breaks a promise how to see it again."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass

from penstock.queue.compiled.use import is_compiled
from proof.sim.bugs.bugs import PLANTS
from proof.sim.story import run
from proof.sim.world import BrokenError, World

DAMAGE_EVERY = 5  # of so many seeds one flips bits instead of cutting the power


@dataclass(frozen=True, slots=True)
class Conviction:
    """A seed whose world broke a promise."""

    seed: int
    invariant: str
    what: str
    plant: str | None
    trace: tuple[str, ...]

    @property
    def command(self) -> str:
        how = f" --plant {self.plant}" if self.plant else " --compiled" if is_compiled() else ""
        return f"python -m proof.sim --seed {self.seed}{how}"

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.invariant}: {self.what}\n  replay: {self.command}"


def make_world(seed: int, only: str | None = None) -> World:
    """The world of a seed; which kind it is follows from the seed alone."""
    return World(seed, damage=seed % DAMAGE_EVERY == 0, only=only)


def try_seed(seed: int, plant: str | None = None, only: str | None = None) -> Conviction | None:
    """Run one seed, with a planted bug or without, judged by all invariants or by one alone."""
    planted = PLANTS[plant] if plant is not None else None
    world = make_world(seed, only)
    try:
        with planted.planted() if planted else nullcontext():
            run(world)
    except BrokenError as broken:
        if only in (None, broken.invariant):
            return Conviction(seed, broken.invariant, broken.what, plant, tuple(world.trace))
    return None


def first_conviction(seeds: Iterable[int], plant: str | None = None, only: str | None = None) -> Conviction | None:
    """The first seed that breaks a promise, or None."""
    return next((found for seed in seeds if (found := try_seed(seed, plant, only)) is not None), None)
