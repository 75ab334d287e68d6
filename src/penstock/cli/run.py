"""`penstock run`: an app with its queue, its doors and its queries."""

from __future__ import annotations

import click

from penstock.cli.output import json_option, print_json
from penstock.errors import ConfigError


@click.command("run")
@click.argument("app")
@click.option("--data", metavar="DIR", help="Folder for everything that is written. Default: .penstock")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port of the doors. Default: 8080")
@click.option("--listen", metavar="HOST:PORT", help="Address of the queue that is started for Kafka clients.")
@click.option("--queue", default="", metavar="HOST:PORT", help="Use this queue, ours or Apache Kafka; start none.")
@click.option("--insecure", is_flag=True, default=None, help="Allow an address that other machines can reach.")
@click.option("--dry-run", is_flag=True, help="Say what would run, with which settings and why; start nothing.")
@json_option
def command(
    app: str,
    data: str | None,
    port: int | None,
    listen: str | None,
    queue: str,
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
    return supervise(app, load_options(flags, port=port, queue=queue), print_line)


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
    if as_json:
        print_json(plan_json(plan))
    else:
        for line in plan_lines(plan, reasons=True):
            click.echo(line)
    return 0
