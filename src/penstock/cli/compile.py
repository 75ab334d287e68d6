"""`penstock compile`: the broker's hot modules as machine code."""

from __future__ import annotations

import os

import click

from penstock.errors import ConfigError
from penstock.process.cache import cache_folder
from penstock.process.lifeline import exit_when_told
from penstock.queue.compiled.make import make_compiled, missing_tools
from penstock.queue.compiled.modules import MODULES, find_compiled


@click.command("compile")
def command() -> None:
    """Compile the modules that every request to the broker passes through; anew after each change of the sources.

    A minute or two, with a C compiler and the extra 'compile'. Brokers started afterwards use what was made, in the
    user's cache folder, unless the setting 'compiled' is off; they do the same with less processor time.
    """
    if (there := find_compiled(os.environ)) is not None:
        click.echo(f"compiled already: {there}")
        return
    if missing := missing_tools(os.environ):
        raise ConfigError(*missing)
    exit_when_told()
    click.echo(f"compiling {len(MODULES)} modules with mypyc: a minute or two")
    made = make_compiled(cache_folder(os.environ), os.environ)
    click.echo(f"compiled: {made}; brokers started from now on use it")
