"""`penstock queries`: what every continuous query does, from what it reports to the queue."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime

import click
import msgspec

from penstock.cli.query_orders import ORDERS
from penstock.cli.shared.broker_link import broker_option
from penstock.cli.shared.output import json_option, print_json, print_table
from penstock.cli.shared.query_reports import ReportReader, Reports
from penstock.events.query_status import QueryStatus, is_silent
from penstock.kafka.target import KafkaTarget

_REFRESH_S = 1.0
_CLEAR = "\x1b[H\x1b[2J"
_NOBODY = "no query has reported within the last hour: start an app with 'penstock run APP'."


@click.group("queries", invoke_without_command=True)
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@json_option
@broker_option
@click.pass_context
def command(context: click.Context, watch: bool, as_json: bool, broker: KafkaTarget) -> None:
    """Show each query: state, mode, rows a second, lag, watermark, state, last checkpoint and latency.

    With a command: order a query to pause, to go on, or to start from another place.

    LAG counts the events behind the query's last commit or, if that is further, behind the furthest with a result.
    """
    if context.invoked_subcommand is not None:
        return
    reader = ReportReader(broker)
    try:
        reader.read_all()
        while True:
            if watch and sys.stdout.isatty():
                click.echo(_CLEAR, nl=False)
            _show(reader.reports, as_json)
            sys.stdout.flush()
            if not watch:
                return
            reader.read(_REFRESH_S)
    except KeyboardInterrupt:
        if not watch:
            raise
    finally:
        reader.close()


for order in ORDERS:
    command.add_command(order)


def _show(reports: Reports, in_json: bool) -> None:
    now_ms = time.time_ns() // 1_000_000
    if in_json:
        found = [
            {**msgspec.to_builtins(report), "silent": is_silent(report, now_ms - report.at_ms)}
            for _, report in sorted(reports.items())
        ]
        print_json(found)
    elif not reports:
        click.echo(_NOBODY)
    else:
        print_table(head(reports), rows(reports, now_ms))
        for line in reasons(reports):
            click.echo(line)


HEAD = (
    "QUERY",
    "STATE",
    "MODE",
    "IN/S",
    "OUT/S",
    "LAG",
    "WATERMARK",
    "LATE",
    "STATE ROWS",
    "STATE SIZE",
    "CHECKPOINT",
    "LATENCY MS",
)

_NOTHING = "-"
_Reports = Mapping[tuple[str, str], QueryStatus]  # by app and query


def head(reports: _Reports) -> tuple[str, ...]:
    """The columns; the app is one where the queue has the queries of several."""
    return ("APP", *HEAD) if _has_several_apps(reports) else HEAD


def rows(reports: _Reports, now_ms: int) -> list[list[str]]:
    """One row a query, by app and name."""
    has_several = _has_several_apps(reports)
    return [
        [*([app] if has_several else []), *_row(query, report, now_ms)]
        for (app, query), report in sorted(reports.items())
    ]


def _has_several_apps(reports: _Reports) -> bool:
    return len({app for app, _ in reports}) > 1


def reasons(reports: _Reports) -> list[str]:
    """Why each query runs in the mode it does, and why it does not run, where it says so."""
    found = []
    for (app, query), report in sorted(reports.items()):
        name = f"{app}/{query}" if _has_several_apps(reports) else query
        if report.mode and report.mode_reason:
            found.append(f"{name}: {report.mode}: {report.mode_reason}")
        if report.reason:
            found.append(f"{name}: {report.state}: {report.reason}")
    return found


def _row(name: str, report: QueryStatus, now_ms: int) -> list[str]:
    state: str = report.state
    if is_silent(report, now_ms - report.at_ms):
        state = f"silent since {clock(report.at_ms)} (was {state})"
    took = report.latency_ms
    return [
        name,
        state,
        report.mode or _NOTHING,
        number(report.rows_in_per_s),
        number(report.rows_out_per_s),
        number(report.lag),
        report.watermark or _NOTHING,
        number(report.late),
        number(report.state_rows),
        size(report.state_bytes),
        _NOTHING if report.checkpoint_ms is None else clock(report.checkpoint_ms),
        _NOTHING if took is None else " / ".join(number(part) for part in (took.min, took.avg, took.max)),
    ]


def number(value: float | None) -> str:
    """Whole numbers with thousands apart; small ones with one digit."""
    if value is None:
        return _NOTHING
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.1f}"


def size(value: float | None) -> str:
    """Bytes as KiB, MiB, GiB."""
    if value is None:
        return _NOTHING
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def clock(timestamp_ms: float | None) -> str:
    """HH:MM:SS in UTC."""
    try:
        return datetime.fromtimestamp(float(timestamp_ms or 0) / 1000, UTC).strftime("%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return _NOTHING
