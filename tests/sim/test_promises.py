"""The simulator itself: every promise holds under every seed, and a seed is one story."""

from __future__ import annotations

import os

import pytest

from proof.sim.seeds import first_conviction, make_world, try_seed
from proof.sim.story import run

FULL = os.environ.get("PENSTOCK_TEST") == "full"
BLOCKS, SEEDS = (30, 60) if FULL else (4, 12)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_promise_holds_whatever_goes_wrong(block: int) -> None:
    """Power cuts, kills, failing and full disks, flipped bits, broken connections: nothing promised is lost."""
    found = first_conviction(range(block * SEEDS, (block + 1) * SEEDS))

    assert found is None, str(found)


def test_a_seed_tells_the_same_story_every_time() -> None:
    """A failure found once can be looked at for ever."""
    first, second = run(make_world(7)), run(make_world(7))

    assert first.trace == second.trace
    assert first.scene.history == second.scene.history
    assert first.steps == second.steps


def test_a_failure_names_the_seed_the_invariant_and_the_command() -> None:
    """Whoever reads the failure can replay it."""
    found = try_seed(1, "ack-before-fsync")

    assert found is not None
    assert f"seed 1: {found.invariant}" in str(found)
    assert "python -m proof.sim --seed 1 --plant ack-before-fsync" in str(found)
