"""`python -m proof.sim`: many seeds, and the verdict."""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TextIO

from penstock.errors import invariant
from penstock.queue.compiled.use import is_compiled, use_compiled

if TYPE_CHECKING:
    from proof.sim.seeds import Conviction

SHOWN_MAX = 10


def main() -> int:
    """Exit status 0: nothing found, or the planted bug was found; 1 otherwise."""
    options = _options()
    if options.compiled and not use_compiled(os.environ):
        _say("the broker is not compiled: penstock compile", sys.stderr)
        return 2
    from proof.sim.bugs.bugs import PLANTS

    if options.plant is not None and options.plant not in PLANTS:
        _say(f"there is no bug {options.plant}, but {', '.join(sorted(PLANTS))}", sys.stderr)
        return 2
    seeds = [options.seed] if options.seed is not None else range(options.first, options.first + options.seeds)
    began = shown_at = time.monotonic()
    found: list[Conviction] = []
    number = 0
    workers = min(len(seeds), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, initializer=_begin, initargs=(options.compiled,)) as pool:
        for number, conviction in enumerate(pool.map(partial(_try, options.plant), seeds, chunksize=5), start=1):
            if conviction is not None:
                found.append(conviction)
                if len(found) <= SHOWN_MAX:
                    _say(str(conviction))
                if options.seed is not None:
                    _say("\n".join(conviction.trace))
                if options.plant is not None:
                    pool.shutdown(wait=False, cancel_futures=True)
                    break
            if time.monotonic() - shown_at > 5:
                shown_at = time.monotonic()
                _say(f"{number} of {len(seeds)} seeds, {len(found)} broke a promise", sys.stderr)
    seconds = time.monotonic() - began
    which = "compiled, " if options.compiled else ""
    _say(f"{number} seeds in {seconds:.1f} s: {which}{_verdict(found, options.plant)}")
    return int(bool(found) == (options.plant is None))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.sim", description="Simulate a node under many seeds.")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, default=None, help="run this one only, and tell what happened in it")
    # What is compiled cannot be replaced.
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--plant", default=None, help="plant this bug first; docs/testing.md has their names")
    which.add_argument("--compiled", action="store_true", help="simulate what 'penstock compile' has made")
    return parser.parse_args()


def _begin(compiled: bool) -> None:
    """In a worker, which may or may not have been forked from a process that uses them."""
    if compiled and not is_compiled():
        invariant(use_compiled(os.environ), "a worker simulates what its parent was told to")


def _try(plant: str | None, seed: int) -> Conviction | None:
    from proof.sim.bugs.bugs import PLANTS
    from proof.sim.seeds import try_seed

    return try_seed(seed, plant, PLANTS[plant].convicted_by[0] if plant is not None else None)


def _verdict(found: list[Conviction], plant: str | None) -> str:
    if plant is None:
        return f"{len(found)} broke a promise" if found else "every promise held"
    if not found:
        return f"the planted bug {plant} was not found"
    return f"the planted bug {plant} was convicted by {found[0].invariant}"


def _say(text: str, stream: TextIO = sys.stdout) -> None:
    stream.write(text + "\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
