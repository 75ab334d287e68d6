"""`penstock run`: an app with its queue, its doors and its queries."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from penstock.cli.output import json_option, print_json
from penstock.config import AnalyzeConfig
from penstock.errors import ConfigError
from penstock.settings import load_config

if TYPE_CHECKING:
    from penstock.plan import Plan


@click.command("run")
@click.argument("app")
@click.option("--data", metavar="DIR", help="Folder for everything that is written. Default: .penstock")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port of the doors. Default: 8080")
@click.option("--listen", metavar="HOST:PORT", help="Address of the queue that is started for Kafka clients.")
@click.option("--queue", default="", metavar="HOST:PORT", help="Use this queue, ours or Apache Kafka; start none.")
@click.option(
    "--adopt", multiple=True, metavar="TOPIC", help="Let the app change this topic, which it did not make; repeatable."
)
@click.option("--take-over", is_flag=True, help="End another run of the app on this queue, and go on in its place.")
@click.option("--insecure", is_flag=True, default=None, help="Allow an address that other machines can reach.")
@click.option(
    "--dry-run", is_flag=True, help="Say what would run, with which settings and why; check the queries on Spark."
)
@json_option
def command(
    app: str,
    data: str | None,
    port: int | None,
    listen: str | None,
    queue: str,
    adopt: tuple[str, ...],
    take_over: bool,
    insecure: bool | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run APP (shop.py, shop.py:shop, package.module:shop): queue, doors and queries.

    Prints 'ready http://HOST:PORT' when all of it serves, stops cleanly on SIGTERM or Ctrl-C. Whatever of it is killed
    is started again; nothing that was accepted is lost, as far as the app's guarantees say.
    """
    if as_json and not dry_run:
        raise click.UsageError("--json is for --dry-run")
    if queue and listen:
        raise ConfigError("--listen is for the queue that is started, and --queue names one that runs: give one")
    if dry_run:
        return _tell(app, queue, as_json)
    from penstock.runtime.supervisor import load_options, print_line, supervise

    flags = {"data": data, "listen": listen, "insecure": insecure}
    options = replace(load_options(flags, port=port, queue=queue), adopt=adopt, take_over=take_over)
    return supervise(app, options, print_line)


def _tell(app: str, queue: str, as_json: bool) -> int:
    from penstock.guarantee import Queue
    from penstock.loading import load_app
    from penstock.plan import plan_app
    from penstock.runtime.plan_text import plan_json, plan_lines

    if queue:
        from penstock.client.topics import look_at_queue

        kind = look_at_queue(queue)
    else:
        kind = Queue()
    plan = plan_app(load_app(app), kind)
    if not as_json:
        for line in plan_lines(plan, reasons=True):
            click.echo(line)
    modes, unchecked = _check(plan, app)
    if as_json:
        print_json(plan_json(plan) | {"checked": modes, "unchecked": unchecked})
        return 0
    for query, told in modes.items():
        why = f" ({told['reason']})" if told["reason"] else ""
        click.echo(f"checked  query {query}: {told['mode']}{why}")
    if unchecked:
        click.echo(f"the queries themselves were not checked: {unchecked}")
    return 0


def _check(plan: Plan, app: str) -> tuple[dict[str, dict[str, str | None]], str | None]:
    """The mode of each query as Spark sees it, or why Spark was not asked; ConfigError if one cannot run."""
    if not plan.queries:
        return {}, None
    try:
        from penstock.analyze.checking import NoSparkError, check_queries
    except ImportError:
        return {}, "Spark is missing: run pip install 'penstock[spark]'"
    # PySpark logs a trace for each fault, which we tell in a line, and others when its JVM is gone.
    logging.disable(logging.CRITICAL)
    config, _ = load_config(Path.cwd(), os.environ, {}, AnalyzeConfig)
    try:
        found = check_queries(plan, app, config)
    except NoSparkError as missing:
        return {}, str(missing)
    return {name: {"mode": choice.mode, "reason": choice.reason} for name, choice in found.items()}, None
