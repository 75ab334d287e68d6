"""A check counts only if it has caught its plant."""

from __future__ import annotations

import pytest

from proof.sim.bugs.bugs import PLANTS
from proof.sim.checks.invariants import AFTER_STEP
from proof.sim.checks.replies import ON_REPLY
from proof.sim.seeds import first_conviction, try_seed

SEEDS_MAX = 400
CASES = [(plant.name, name) for plant in PLANTS.values() for name in plant.convicted_by]
# What a run says by itself: these are no functions.
SPOKEN = {
    "replies-in-order",
    "calm-finishes",
    "history-is-valid",
    "nothing-behind-damage-is-lost",
    "transactions-are-whole",
}


@pytest.mark.parametrize(("plant", "invariant"), CASES)
def test_a_planted_bug_is_convicted_by_name(plant: str, invariant: str) -> None:
    """The named invariant alone finds the bug, and finds nothing in the same world without it."""
    found = first_conviction(range(SEEDS_MAX), plant, invariant)

    assert found is not None, f"{invariant} did not find {plant} in {SEEDS_MAX} seeds"
    assert found.invariant == invariant
    assert try_seed(found.seed) is None


def test_every_invariant_has_caught_a_plant() -> None:
    """No check stands here untested."""
    assert {name for _, name in CASES} == {*AFTER_STEP, *ON_REPLY, *SPOKEN}
