"""`penstock run --dry-run`: what would run, and everything for which `run` would refuse to."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.output import print_json
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.analyze.modes import Choice
    from penstock.client.topic_differences import Difference
    from penstock.plan import Plan
    from penstock.runtime.options import RunOptions
    from penstock.runtime.plan_text import Copies


def dry_run(spec: str, options: RunOptions, as_json: bool) -> int:
    """Print the plan, the differences to the queue, and the mode of each query; ConfigError with every fault."""
    from penstock.app_checks import app_faults
    from penstock.client.topic_differences import Action
    from penstock.client.topics import adopt_faults, copies_of, look_at_queue
    from penstock.guarantee import Queue
    from penstock.loading import load_app
    from penstock.plan import plan_app, plan_to_check
    from penstock.runtime.options import refuse_addresses

    refuse_addresses(options)
    app = load_app(spec)
    kind = look_at_queue(options.queue) if options.queue else Queue()
    faults = list(app_faults(app, kind))
    plan = plan_to_check(app, kind) if faults else plan_app(app, kind)
    differences = [] if faults else _differences(plan, options)
    faults += adopt_faults(plan, options.adopt)
    faults += [found.sentence for found in differences if found.action is Action.REFUSE]
    try:
        choices, unchecked = _ask_spark(plan, spec, options)
    except ConfigError as wrong:
        faults += wrong.faults
    if faults:
        raise ConfigError(*faults)
    copies = copies_of(options.queue, list(plan.topics)) if kind.kind == "kafka" else None
    _print(plan, differences, choices, unchecked, copies, as_json)
    return 0


def _differences(plan: Plan, options: RunOptions) -> list[Difference]:
    from penstock.client.topics import inspect_topics, topic_differences, wanted_topics

    wanted = list(wanted_topics(plan))
    if options.queue:
        return inspect_topics(options.queue, wanted, plan.app, options.adopt)
    from penstock.cli.offline_topics import offline_topics

    return topic_differences(plan.app, wanted, *offline_topics(Path(options.data)), options.adopt)


def _ask_spark(plan: Plan, spec: str, options: RunOptions) -> tuple[dict[str, Choice], str | None]:
    """The mode of each query as Spark sees it, or why Spark was not asked; ConfigError if one cannot run."""
    if not plan.queries:
        return {}, None
    from penstock.loading import need_spark

    need_spark(plan)
    from penstock.analyze.checking import NoSparkError, check_queries

    if sys.stderr.isatty():
        click.echo("asking Spark about the queries: some seconds", err=True)
    # PySpark logs a trace for each fault, which we tell in a line, and others when its JVM is gone.
    logging.disable(logging.CRITICAL)
    try:
        return check_queries(plan, spec, options.analyze), None
    except NoSparkError as missing:
        return {}, str(missing)


def _print(
    plan: Plan,
    differences: Sequence[Difference],
    choices: dict[str, Choice],
    unchecked: str | None,
    copies: Copies | None,
    as_json: bool,
) -> None:
    from penstock.runtime.plan_text import plan_json, plan_lines

    modes = {name: (choice.mode, choice.reason) for name, choice in choices.items()}
    if as_json:
        checked = {name: {"mode": mode, "reason": reason} for name, (mode, reason) in modes.items()}
        told = [
            {"topic": d.topic, "setting": d.setting, "wanted": d.wanted, "there": d.there, "action": d.action.value,
             "reason": d.sentence}
            for d in differences
        ]  # fmt: skip
        print_json(plan_json(plan) | {"checked": checked, "unchecked": unchecked, "differences": told})
        return
    for line in plan_lines(plan, reasons=True, modes=modes, copies=copies):
        click.echo(line)
    for difference in differences:
        click.echo(f"queue    {difference.sentence}")
    if unchecked:
        click.echo(f"the queries themselves were not checked: {unchecked}")
