"""`penstock broker`: the queue alone, in the foreground."""

from __future__ import annotations

import os
from pathlib import Path

import click

from penstock.cli.settings import load_config


@click.command("broker")
@click.option("--data", metavar="DIR", help="Folder for everything that is written. Default: .penstock")
@click.option("--listen", metavar="HOST:PORT", help="Address for Kafka clients. Default: 127.0.0.1:9092")
@click.option("--advertise", metavar="HOST:PORT", help="Address told to clients, where it is another one.")
@click.option("--metrics", metavar="HOST:PORT", help="Address for GET /metrics and /health. Default: none")
@click.option("--insecure", is_flag=True, default=None, help="Allow an address that other machines can reach.")
def command(
    data: str | None, listen: str | None, advertise: str | None, metrics: str | None, insecure: bool | None
) -> int:
    """Run the queue on this machine, in the foreground.

    Prints 'ready HOST:PORT' when clients are served, stops cleanly on SIGTERM or Ctrl-C, and recovers by itself after
    any other end. A record is acknowledged when it is on disk. All other settings: penstock config explain.
    """
    flags = {"data": data, "listen": listen, "advertise": advertise, "metrics": metrics, "insecure": insecure}
    config, _ = load_config(Path.cwd(), os.environ, flags)
    from penstock.runtime.server import run_broker

    return run_broker(config)
