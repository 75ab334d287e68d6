"""Break the first disk call, then the second, and so on, until a run survives untouched."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace

from proof.sim.story import calm_down, final_read, small_world
from proof.sim.world import World

STEPS = 24
_EVENTS = {8: "kill", 14: "cut_power", 20: "stop"}


def sweep(seed: int, code: int = errno.EIO, first: int = 1, stride: int = 1) -> Iterator[int]:
    """Each number of a call that was broken in a run; ends with the first run that does not reach its call.

    BrokenError when a promise does not hold.
    """
    number = first
    while _run_with_fault(seed, code, number):
        yield number
        number += stride


def _run_with_fault(seed: int, code: int, number: int) -> bool:
    """Run the same small story with one failing call; False if it was over before that call."""
    world = World(seed)
    world.profile = replace(world.profile, sync_speed=0.7)
    faults = world.disk.faults
    faults.fail_at, faults.fail_with = number, code
    with small_world():
        for step in range(STEPS):
            if world.node is None:
                world.start()
            elif step in _EVENTS:
                getattr(world, _EVENTS[step])()
            world.moment()
        was_reached = faults.calls >= number
        calm_down(world)
        final_read(world)
    return was_reached
