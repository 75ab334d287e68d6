"""`penstock broker`: the queue alone, in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click

from penstock.config.addresses import parse_address
from penstock.config.broker import BrokerConfig
from penstock.config.layers import load_config
from penstock.errors import ConfigError
from penstock.process.lifeline import CHILD_VARIABLE, DRILLED, die_with_input, die_with_parent

_DEFAULT = BrokerConfig()
_MADE_BY_DISKS = "lost+found"  # stands in the root of every ext4


@click.command("broker")
@click.option("--data", metavar="DIR", help=f"Folder for everything that is written. Default: {_DEFAULT.data}")
@click.option("--listen", metavar="HOST:PORT", help=f"Address for Kafka clients. Default: {_DEFAULT.listen}")
@click.option("--advertise", metavar="HOST:PORT", help="Address told to clients, where it is another one.")
@click.option("--metrics", metavar="HOST:PORT", help="Address for GET /metrics, /health and /ready. Default: none")
@click.option("--insecure", is_flag=True, default=None, help="Allow an address that other machines can reach.")
def command(
    data: str | None, listen: str | None, advertise: str | None, metrics: str | None, insecure: bool | None
) -> int:
    """Run the queue on this machine, in the foreground.

    Prints 'ready HOST:PORT' when clients are served, stops cleanly on SIGTERM or Ctrl-C, and recovers by itself after
    any other end. A record is acknowledged when it is on disk. All other settings: penstock config explain.
    """
    if starter := os.environ.get(CHILD_VARIABLE):
        die_with_input() if starter == DRILLED else die_with_parent()
    flags = {"data": data, "listen": listen, "advertise": advertise, "metrics": metrics, "insecure": insecure}
    config, _ = load_config(Path.cwd(), os.environ, flags, BrokerConfig)
    _refuse_addresses(config)
    _refuse_folder(config.data)
    if config.compiled:
        from penstock.queue.compiled.use import use_compiled

        if not use_compiled(os.environ):
            from penstock.process.log_lines import log_line
            from penstock.queue.compiled.modules import why_interpreted

            log_line("info", "interpreted", reason=why_interpreted(os.environ), remedy="penstock compile")
    from penstock.queue.server.process import run_broker

    return run_broker(config)


def _refuse_addresses(config: BrokerConfig) -> None:
    faults = []
    for name in ("listen", "advertise", "metrics"):
        if address := getattr(config, name):
            try:
                parse_address(address)
            except ValueError as wrong:
                faults.append(f"{name}: {wrong}")
    if not config.listen:
        faults.append("listen must be HOST:PORT, not empty")
    if faults:
        raise ConfigError(*faults)


def _refuse_folder(data: str) -> None:
    """Make sure that `data` is a folder of ours, or may become one."""
    from penstock.queue.log.layout import META_FOLDER
    from penstock.queue.offline.read_only_disk import LOCK

    if not data:
        raise ConfigError("--data must be a folder that can be written to, not empty")
    folder = Path(data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {name for name in os.listdir(folder) if name != _MADE_BY_DISKS}
    except OSError as error:
        why = (
            "there is a file"
            if isinstance(error, FileExistsError | NotADirectoryError)
            else (error.strerror or "").lower()
        )
        raise ConfigError(f"--data must be a folder that can be written to, and {data} is none ({why})") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"--data must be a folder that can be written to, and {data} cannot")
    if names and not names & {META_FOLDER, LOCK}:
        raise ConfigError(f"{data} holds files that are not Penstock's: give --data an empty folder, or a new one")
