"""`python -m penstock.sim`: many seeds, and the verdict."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext

from penstock.sim.story import run
from penstock.sim.world import BrokenError, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.sim", description="Simulate a node under many seeds.")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--seed", type=int, default=None, help="run this seed only, and tell its story")
    parser.add_argument("--first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--damage", action="store_true", help="flip bits instead of cutting the power")
    parser.add_argument("--plant", default=None, help="plant this bug first; the simulator should find it")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds) if options.seed is None else [options.seed]
    began = time.monotonic()
    failures = 0
    for seed in seeds:
        world = World(seed, damage=options.damage)
        try:
            with nullcontext():
                run(world)
        except BrokenError as broken:
            failures += 1
            print(f"seed {seed}: {broken}")
            if options.seed is not None:
                print("\n".join(world.trace))
                raise
    print(len(seeds), failures, time.monotonic() - began)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
