"""`penstock completion`: the script that makes a shell complete our commands."""

from __future__ import annotations

import click

_HOW = {
    "bash": 'eval "$(penstock completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(penstock completion zsh)" in ~/.zshrc',
    "fish": "penstock completion fish > ~/.config/fish/completions/penstock.fish",
}


@click.command("completion", epilog="To keep it: " + "; ".join(f"{how}" for how in _HOW.values()) + ".")
@click.argument("shell", type=click.Choice(list(_HOW)))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from penstock.cli.main import command as penstock

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click cannot complete for {shell}")
    click.echo(kind(penstock, {}, "penstock", "_PENSTOCK_COMPLETE").source())
