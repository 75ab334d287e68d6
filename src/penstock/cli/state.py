"""`penstock state`: what a query remembers."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

import click

from penstock.cli.shared.output import json_option, print_table
from penstock.config.analyze import AnalyzeConfig
from penstock.config.broker import BrokerConfig
from penstock.config.layers import load_config
from penstock.config.setting import hint
from penstock.errors import ConfigError

_LIMIT = 100


@click.command("state")
@click.argument("name")
@click.option("--data", metavar="DIR", help="The data folder of the run. Default: that of 'penstock run' here.")
@click.option("--key", "keys", multiple=True, metavar="COLUMN=VALUE", help="Only rows with this key; repeatable.")
@click.option("--limit", type=click.IntRange(1), default=_LIMIT, show_default=True, help="Print at most so many rows.")
@json_option
def command(name: str, data: str | None, keys: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Print what the query NAME remembers: its state as of the last committed batch.

    It is read from the checkpoint in the data folder, whether the app runs or not; that takes some seconds. With --json
    each row is a line.
    """
    from penstock.analyze.checkpoints import Checkpoint, checkpoint_names

    folder = Path(data or load_config(Path.cwd(), os.environ, {}, BrokerConfig)[0].data)
    checkpoints = folder.absolute() / "analyze" / "checkpoints"
    names = checkpoint_names(checkpoints)
    if name not in names:
        raise ConfigError(f"no query {name} has run on {folder}{hint(name, dict.fromkeys(names))}")
    wanted = dict(_column(text) for text in keys)
    from penstock.analyze.state_reader import read_state

    logging.disable(logging.CRITICAL)  # PySpark logs a trace for each error, which is told in a line
    if sys.stderr.isatty():
        click.echo("reading the state with Spark: some seconds", err=True)
    config = load_config(Path.cwd(), os.environ, {}, AnalyzeConfig)[0]
    rows = read_state(Checkpoint(checkpoints, name), config, wanted, limit + 1)
    for row in rows[:limit] if as_json else ():
        click.echo(json.dumps(row, ensure_ascii=False))
    if not as_json:
        if rows:
            labels = [column for column in ("operator", "kind", "side", "variable") if column in rows[0]]
            rest = [{column: part for column, part in row.items() if column not in labels} for row in rows[:limit]]
            columns = list(rest[0])
            table = [
                [*(row.get(label, "-") for label in labels), *(_text(part.get(column)) for column in columns)]
                for row, part in zip(rows, rest, strict=False)
            ]
            print_table([column.upper() for column in (*labels, *columns)], table)
        else:
            click.echo("no rows", err=True)
    if len(rows) > limit:
        click.echo(f"more than {limit} rows: --limit shows more, --key COLUMN=VALUE finds one", err=True)


def _column(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not COLUMN=VALUE", param_hint="--key")
    return column, value


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
