"""`python -m bench`: measure, print, and keep the last full table in docs/benchmarks.md."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.child import ROOT
from bench.doors import HttpTrial, NdjsonTrial
from bench.machine import describe_machine
from bench.outcome import Outcome, outcomes, spread
from bench.pace import QUICK, Pace
from bench.page import kept_with, write_page
from bench.picture import draw
from bench.row import PATH, QUEUE, Row
from bench.rows import chosen
from bench.runner import run_rows
from bench.scene import Scene, say
from bench.statement import statement
from bench.stolen import stolen_percent, ticks_now
from bench.wrk import find_wrk
from penstock.errors import PenstockError

_PAGE = ROOT / "docs" / "benchmarks.md"
_KEPT = _PAGE.with_suffix(".json")  # the last measurement of every row
_PICTURES = {QUEUE: "benchmarks.png", PATH: "benchmarks-path.png"}


def main() -> int:
    """Measure what was asked for, or publish an earlier report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # whoever was started is ended then, too
    options = _options()
    if options.publish is not None:
        _publish([json.loads(path.read_text("utf-8")) for path in options.publish])
        return 0
    rows = chosen(options.only)
    if options.list:
        print("\n".join(f"{row.name:28} {row.title}" for row in rows))
        return 0
    if any(isinstance(row.ours, (HttpTrial, NdjsonTrial)) for row in rows):
        try:
            find_wrk()
        except PenstockError as missing:
            sys.exit(f"bench: {missing}")  # before an hour of other rows
    pace = QUICK if options.quick else Pace()
    if options.rounds is not None:
        pace = dataclasses.replace(pace, rounds=options.rounds)
    report = _measure(rows, pace, options)
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    if options.only is None and not options.quick and not options.ours_only:
        (ROOT / ".bench" / "last.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
        _publish([report])
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ours beside its peers, in one run.")
    parser.add_argument("--only", metavar="NAME[,NAME]", help="rows to measure, by name or beginning of a name")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    parser.add_argument("--quick", action="store_true", help="short runs, one round, no warm-up rounds: a smoke test")
    parser.add_argument("--ours-only", action="store_true", help="leave the peers out, to tune ours quickly")
    parser.add_argument("--rounds", type=int, metavar="N", help="measured rounds of each trial")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there as well")
    parser.add_argument("--data", type=Path, metavar="DIR", default=ROOT / ".bench", help="where both brokers write")
    parser.add_argument(
        "--publish", type=Path, nargs="+", metavar="FILE", help="put the rows of earlier reports into docs and stop"
    )
    return parser.parse_args()


def _measure(rows: list[Row], pace: Pace, options: argparse.Namespace) -> dict[str, Any]:
    (ROOT / ".bench").mkdir(exist_ok=True)
    folder = options.data.resolve() / f"run-{os.getpid()}"  # two runs at once must not empty each other's folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _raise_file_limit()
    machine = describe_machine(folder)
    before = ticks_now()
    scene = Scene(folder, pace)
    try:
        results = outcomes(rows, run_rows(scene, rows, options.ours_only))
    except BaseException:
        say(f"failed; data and logs of the brokers are kept in {folder}")
        raise
    finally:
        scene.stop_brokers()
    shutil.rmtree(folder, ignore_errors=True)
    machine["kept back by the host meanwhile"] = f"{stolen_percent(before, ticks_now()):.1f} % of the processors"
    facts = statement(pace, machine)
    for section in dict.fromkeys(row.section for row in rows):
        print("\n".join(facts[section]))
    for result in results:
        say(_remark(result))
    for result in results:
        print(result.line(), flush=True)
    return {
        "command": " ".join(["python -m bench", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "machine": machine,
        "statement": facts,
        "rows": [result.to_json() for result in results],
    }


def _remark(result: Outcome) -> str:
    verdict = {True: "reached", False: "MISSED", None: "stated"}[result.is_reached]
    goal = "" if result.row.goal is None else f" (goal {result.row.goal})"
    rounds = f"ours {spread(result.ours)}, peer {spread(result.kafka)} {result.row.unit}"
    return f"{result.row.name}: {verdict}{goal}; {rounds}"


def _raise_file_limit() -> None:
    # Many partitions are many open files; brokers inherit the limit.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def _publish(reports: list[dict[str, Any]]) -> None:
    kept = kept_with(json.loads(_KEPT.read_text("utf-8")), reports)
    _KEPT.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    write_page(_PAGE, kept)
    for section, name in _PICTURES.items():
        draw([row for row in kept["rows"].values() if row["section"] == section], _PAGE.with_name(name))
    say(f"wrote {_PAGE.relative_to(ROOT)} and its pictures")


if __name__ == "__main__":
    sys.exit(main())
