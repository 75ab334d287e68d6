"""`penstock demo`: the fraud desk with purchases coming in."""

from __future__ import annotations

import time

import click


@click.command("demo")
@click.option("--data", metavar="DIR", help="Folder for everything that is written. Default: .penstock")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port of the page. Default: 8080")
@click.option("--listen", metavar="HOST:PORT", help="Address of the queue for Kafka clients.")
@click.option("--rate", type=click.FloatRange(min=0), default=10.0, show_default=True, metavar="N",
              help="Purchases a second; 0 sends none.")  # fmt: skip
@click.option(
    "--seed", type=int, metavar="N", help="One seed makes one stream of purchases. Default: another each time."
)
def command(data: str | None, port: int | None, listen: str | None, rate: float, seed: int | None) -> int:
    """Run a fraud desk, to see what Penstock does.

    Purchases come in by HTTP, Spark decides each one, and a page shows the decisions. Ctrl-C stops all of it.
    """
    from penstock.supervisor.options import load_options
    from penstock.supervisor.run import print_line, supervise

    def say(who: str, text: str) -> None:
        print_line(who, text)
        address = text.removeprefix("ready ")
        if not who and address != text:
            print_line("", f"\nOpen {address}/ to see decisions as they happen. Ctrl-C stops everything.\n")
            from penstock.demo.terminals import start_terminals

            start_terminals(address, int(time.time()) if seed is None else seed, rate)

    print_line(
        "", "A fraud desk: purchases come in by HTTP, Spark decides each one, the decision is pushed to the page."
    )
    return supervise(
        "penstock.demo.app:fraud", load_options({"data": data, "listen": listen}, port=port, queue=""), say
    )
