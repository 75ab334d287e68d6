"""`penstock run`: an app with its queue, its doors and its queries."""

from __future__ import annotations

from dataclasses import replace

import click

from penstock.cli.shared.output import json_option
from penstock.errors import ConfigError


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
    "--dry-run",
    "is_dry_run",
    is_flag=True,
    help="Say what would run, with which settings and why; check the queries on Spark.",
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
    is_dry_run: bool,
    as_json: bool,
) -> int:
    """Run APP (shop.py, shop.py:shop, package.module:shop): queue, doors and queries.

    Prints 'ready http://HOST:PORT' when all of it serves, stops cleanly on SIGTERM or Ctrl-C. Whatever of it is killed
    is started again; nothing that was accepted is lost, as far as the app's guarantees say.
    """
    if as_json and not is_dry_run:
        raise click.UsageError("--json is for --dry-run")
    if queue and listen:
        raise ConfigError("--listen is for the queue that is started, and --queue names one that runs: give one")
    from penstock.supervisor.options import load_options
    from penstock.supervisor.run import print_line, supervise

    flags = {"data": data, "listen": listen, "insecure": insecure}
    options = replace(load_options(flags, port=port, queue=queue), adopt=adopt, take_over=take_over)
    if is_dry_run:
        from penstock.cli.dry_run import dry_run

        return dry_run(app, options, as_json)
    return supervise(app, options, print_line)
