"""python -m proof.storm --minutes 5 --seed 7"""

from __future__ import annotations

import random
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click
import msgspec
from confluent_kafka import KafkaException

from penstock.assure.report import report_data, report_lines
from penstock.drills.exit_status import FAILED, STATUS
from penstock.errors import PenstockError
from penstock.process.lifeline import exit_when_told
from proof.sim.bugs.bugs import PLANTS
from proof.storm.client_processes import FULL
from proof.storm.recording import join_histories
from proof.storm.run import Outcome, histories_in, run_storm
from proof.storm.timeline import Sketch, draw

REPORTS = TEXT, DATA, PICTURE = ("verdict.txt", "verdict.json", "history.png")


@click.command()
@click.option("--minutes", type=click.FloatRange(0, min_open=True), default=5.0, show_default=True,
              help="How long it storms; longer on a machine too slow for the first deeds.")  # fmt: skip
@click.option("--seed", type=int, default=None, help="Repeats the same weather; by default another each time.")
@click.option("--kafka", is_flag=True, help="Against Apache Kafka instead of our broker.")
@click.option("--disk/--no-disk", default=True, help="Fill the disk and break syncs too, where this machine allows it.")
@click.option("--plant", type=click.Choice(sorted(PLANTS)), help="Put a known bug into our broker first.")
@click.option("--report", type=click.Path(path_type=Path), default=Path(".storm"), show_default=True,
              help="Where text, JSON and picture of the verdict go.")  # fmt: skip
def command(minutes: float, seed: int | None, kafka: bool, disk: bool, plant: str | None, report: Path) -> None:
    """Real clients on a broker that is killed, paused, cut off and starved; then the verdict on what they were told."""
    if kafka and plant:
        raise click.UsageError("a plant is a bug of our own broker: give either --kafka or --plant")
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    folder = Path(tempfile.mkdtemp(prefix="penstock-storm-"))
    for name in REPORTS:
        (report / name).unlink(missing_ok=True)
    repeat = repeat_of(minutes, seed, kafka=kafka, disk=disk, plant=plant)
    click.echo(f"storm of {minutes:g} minutes, seed {seed}, in {folder}")
    try:
        outcome = run_storm(folder, seed, minutes * 60, click.echo, kafka=kafka, disk=disk, plant=plant)
    except (PenstockError, KafkaException) as broken:
        click.echo(
            f"the storm could not be played to its end: {broken}\nall there is, is in {folder}\nrepeat: {repeat}"
        )
        sys.exit(FAILED)
    write_report(outcome, folder, report, repeat)
    for line in lines_of(outcome):
        click.echo(line)
    click.echo(f"{', '.join(REPORTS)} are in {report}")
    if outcome.is_good:
        shutil.rmtree(folder)
    else:
        click.echo(f"history, data and log are in {folder}")
    click.echo(f"repeat: {repeat}")
    sys.exit(STATUS[outcome.verdict.result] or (FAILED if outcome.troubles else 0))


def repeat_of(minutes: float, seed: int, *, kafka: bool, disk: bool, plant: str | None) -> str:
    """The command for the same weather on the same broker."""
    given = [("--kafka", kafka), ("--no-disk", not disk), (f"--plant {plant}", plant is not None)]
    options = " ".join(option for option, is_given in given if is_given)
    return f"make storm MINUTES={minutes:g} SEED={seed}" + (f" ARGS={shlex.quote(options)}" if options else "")


def lines_of(outcome: Outcome) -> list[str]:
    """An outcome for people."""
    deeds = Counter(done.kind for done in outcome.done)
    return [
        *report_lines(outcome.verdict),
        "  " + ", ".join(f"{count} {kind}" for kind, count in deeds.most_common()),
        f"  {outcome.swallowed} answers swallowed, {outcome.held_back} ends held back beyond the next begin, "
        f"{outcome.lives} lives of clients, slowest start {outcome.slowest_start_s:.2f} s",
        *(
            [f"  gave up: {', '.join(f'{name} x{n}' for name, n in outcome.gave_up.items())}"]
            if outcome.gave_up
            else []
        ),
        *(f"trouble: {trouble}" for trouble in outcome.troubles[:20]),
    ]


def write_report(outcome: Outcome, folder: Path, report: Path, repeat: str) -> None:
    """The verdict for people, for programs and for the eye."""
    report.mkdir(parents=True, exist_ok=True)
    (report / TEXT).write_text("\n".join([*lines_of(outcome), f"repeat: {repeat}", ""]))
    data = {
        "verdict": report_data(outcome.verdict),
        "repeat": repeat,
        "deeds": [done._asdict() for done in outcome.done],
        "lives": outcome.lives,
        "gave_up": outcome.gave_up,
        "troubles": outcome.troubles,
    }
    (report / DATA).write_bytes(msgspec.json.format(msgspec.json.encode(data)) + b"\n")
    sketch = Sketch(join_histories(histories_in(folder)), outcome.verdict, [part.name for part in FULL])
    draw(sketch, outcome.done, outcome.verdict, repeat, report / PICTURE)


if __name__ == "__main__":
    exit_when_told()
    command()
