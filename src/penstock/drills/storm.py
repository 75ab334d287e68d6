"""A kill -9 storm: a broker is killed at random under load and started again, while real clients go on by themselves.

python -m penstock.drills.storm --minutes 5 --seed 7
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result, Verdict
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.load import Load
from penstock.errors import PenstockError

LIFE_S = (0.2, 3.0)
PROGRESS_S = 10.0


class Outcome(NamedTuple):
    """What a storm came to."""

    verdict: Verdict
    kills: int
    acked: int
    slowest_start_s: float
    troubles: list[str]

    @property
    def is_good(self) -> bool:
        return self.verdict.result is Result.VALID and not self.troubles


def run_storm(folder: Path, seed: int, seconds: float, tell: Callable[[str], None], kills_max: int = 0) -> Outcome:
    """Kill and restart for `seconds` (or `kills_max` times), then let everything settle, and judge it."""
    chance = random.Random(seed)
    broker = BrokerProcess(folder / "data", folder)
    kills, slowest, told = 0, 0.0, time.monotonic()
    with broker:
        load = Load(broker.address, folder / "history.jsonl", seed)
        load.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and (not kills_max or kills < kills_max):
            time.sleep(chance.uniform(*LIFE_S))
            if not broker.is_running:
                raise PenstockError(f"the broker ended by itself: {broker.said[-2000:]}")
            broker.kill()
            kills += 1
            began = time.monotonic()
            broker.start()
            slowest = max(slowest, time.monotonic() - began)
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                read = sum(consumer.read for consumer in load.consumers)
                tell(f"{kills} kills, {load.acked} records acknowledged, {read} read, {ends - told:.0f} s left")
        tell("calm: everything settles, then all is read from the beginning")
        verdict = load.finish()
        status = broker.stop()
    troubles = load.troubles + ([] if status == 0 else [f"the broker ended with status {status}"])
    if "Traceback" in broker.said:
        troubles.append("the broker's log has a traceback")
    return Outcome(verdict, kills, load.acked, slowest, troubles)


@click.command()
@click.option("--minutes", default=5.0, show_default=True, help="How long to kill.")
@click.option("--seed", type=int, default=None, help="Repeats the same moments and load; by default another each time.")
def command(minutes: float, seed: int | None) -> None:
    """Kill -9 a broker under load, again and again, and check what its clients were promised."""
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="penstock-storm-"))
    click.echo(f"storm of {minutes:g} minutes, seed {seed}, in {folder}")
    outcome = run_storm(folder, seed, minutes * 60, click.echo)
    for line in report_lines(outcome.verdict):
        click.echo(line)
    for trouble in outcome.troubles[:20]:
        click.echo(f"trouble: {trouble}")
    click.echo(f"{outcome.kills} kills, slowest start {outcome.slowest_start_s:.2f} s, seed {seed}")
    if outcome.is_good:
        shutil.rmtree(folder)
        return
    click.echo(f"history, data and log are in {folder}")
    click.echo(f"repeat: make storm MINUTES={minutes:g} SEED={seed}")
    sys.exit(1)


if __name__ == "__main__":
    command()
