"""`penstock run --dry-run`: what would run, and everything for which `run` would refuse to."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.shared.output import print_json
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.analyze.dry_run import Checked
    from penstock.plan.plan import Plan
    from penstock.plan.text import Copies
    from penstock.plan.topic_differences import Difference
    from penstock.supervisor.options import RunOptions


def dry_run(spec: str, options: RunOptions, as_json: bool) -> int:
    """Print the plan, the differences to the queue, and the mode of each query; ConfigError with every fault."""
    from penstock.client.topics import copies_of, look_at_queue
    from penstock.guarantee import Queue
    from penstock.plan.checks import app_faults
    from penstock.plan.planner import plan_app, plan_to_check
    from penstock.plan.topic_differences import Action
    from penstock.plan.topics import adopt_faults
    from penstock.process.app_loader import load_app
    from penstock.supervisor.options import refuse_addresses

    refuse_addresses(options)
    app = load_app(spec)
    kind = look_at_queue(options.queue) if options.queue else Queue()
    faults = list(app_faults(app, kind))
    plan = plan_to_check(app, kind) if faults else plan_app(app, kind)
    differences = [] if faults else _differences(plan, options)
    faults += adopt_faults(plan, options.adopt)
    faults += [found.sentence for found in differences if found.action is Action.REFUSE]
    try:
        checked, unchecked = _ask_spark(plan, spec, options)
    except ConfigError as wrong:
        faults += wrong.faults
    if faults:
        raise ConfigError(*faults)
    copies = copies_of(options.queue, list(plan.topics)) if options.queue and kind.kind == "kafka" else None
    _print(plan, differences, checked, unchecked, copies, as_json)
    return 0


def _differences(plan: Plan, options: RunOptions) -> list[Difference]:
    from penstock.client.topics import inspect_topics, topic_differences
    from penstock.plan.topics import wanted_topics

    wanted = list(wanted_topics(plan))
    if options.queue:
        return inspect_topics(options.queue, wanted, plan.app, options.adopt)
    from penstock.cli.offline_topics import offline_topics

    return topic_differences(plan.app, wanted, *offline_topics(Path(options.data)), options.adopt)


def _ask_spark(plan: Plan, spec: str, options: RunOptions) -> tuple[dict[str, Checked], str | None]:
    """The mode of each query and the meaning of its rows, or why Spark was not asked; ConfigError if one cannot run."""
    if not plan.queries:
        return {}, None
    from penstock.process.app_loader import need_spark

    need_spark(plan)
    from penstock.analyze.dry_run import NoSparkError, check_queries

    if sys.stderr.isatty():
        click.echo("asking Spark about the queries: some seconds", err=True)
    # PySpark logs a trace for each fault, which we tell in a line, and others when its JVM is gone.
    logging.disable(logging.CRITICAL)
    try:
        return check_queries(plan, spec, options.analyze, Path(options.data).absolute()), None
    except NoSparkError as missing:
        return {}, str(missing)


def _print(
    plan: Plan,
    differences: Sequence[Difference],
    checked: dict[str, Checked],
    unchecked: str | None,
    copies: Copies | None,
    as_json: bool,
) -> None:
    from penstock.plan.text import plan_json, plan_lines

    modes = {name: (one.choice.mode, one.choice.reason) for name, one in checked.items()}
    if as_json:
        found = {
            name: {
                "mode": one.choice.mode,
                "reason": one.choice.reason,
                "kind": one.meaning.kind,
                "emit": one.emit,
                "key": None if one.meaning.key is None else list(one.meaning.key_names),
                "remarks": list(one.remarks),
            }
            for name, one in checked.items()
        }
        told = [
            {"topic": d.topic, "setting": d.setting, "wanted": d.wanted, "there": d.there, "action": d.action.value,
             "reason": d.sentence}
            for d in differences
        ]  # fmt: skip
        print_json(plan_json(plan) | {"checked": found, "unchecked": unchecked, "differences": told})
        return
    meanings = {name: f"emit='{one.emit}': {one.meaning.text}" for name, one in checked.items()}
    remarks = {name: one.remarks for name, one in checked.items()}
    for line in plan_lines(plan, reasons=True, modes=modes, meanings=meanings, remarks=remarks, copies=copies):
        click.echo(line)
    for difference in differences:
        click.echo(f"queue    {difference.sentence}")
    if unchecked:
        click.echo(f"the queries themselves were not checked: {unchecked}")
