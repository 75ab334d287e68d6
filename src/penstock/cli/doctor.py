"""`penstock doctor`: is this machine fit, is this data whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.output import count, json_option, print_json, print_table
from penstock.config import BrokerConfig
from penstock.errors import ConfigError
from penstock.settings import load_config

if TYPE_CHECKING:
    from penstock.cli.survey import Surveyed
    from penstock.log.inspect import Finding


@click.command("doctor")
@click.option("--data", metavar="DIR", help="Read everything in this data folder, and check it.")
@json_option
def command(data: str | None, as_json: bool) -> int:
    """Check this machine, or with --data the stored records for damage.

    Never writes anything: it can be run beside a broker, and on a folder that cannot be written to. Exit status 1 means
    that something is damaged or unfit; each finding says what can be done.
    """
    return _machine(as_json) if data is None else _data(data, as_json)


def _machine(as_json: bool) -> int:
    from penstock.cli.machine import BAD, checks

    config, _ = load_config(Path.cwd(), os.environ, {}, BrokerConfig)
    found = list(checks(config, os.environ))
    if as_json:
        print_json({"checks": [check._asdict() for check in found]})
    else:
        print_table(("CHECK", "STATUS", ""), found)
    return 1 if any(check.status == BAD for check in found) else 0


def _data(folder: str, as_json: bool) -> int:
    from penstock.cli.read_only import ReadOnlyDisk
    from penstock.cli.survey import survey
    from penstock.log.layout import META_FOLDER

    if Path(folder, "queue", META_FOLDER).is_dir():
        folder = str(Path(folder, "queue"))  # that of 'penstock run': the queue is one part of it
    disk = ReadOnlyDisk(folder)
    if not disk.exists(META_FOLDER):
        path = Path(folder)
        there = "is not there" if not path.exists() else "holds no data of Penstock" if path.is_dir() else "is a file"
        raise ConfigError(f"{folder} {there}: give the --data of 'penstock run' or 'penstock broker'")
    in_use = disk.is_in_use()
    surveyed = list(survey(disk))
    damaged = sum(finding.is_damage for log in surveyed for finding in log.findings)
    if as_json:
        findings = [_told(log, finding) for log in surveyed for finding in log.findings]
        print_json(
            {"data": folder, "in_use": in_use, "logs": len(surveyed), "damaged": damaged, "findings": findings}
        )  # fmt: skip
    else:
        _print(folder, in_use, surveyed, damaged)
    return 1 if damaged else 0


def _told(log: Surveyed, finding: Finding) -> dict[str, Any]:
    own = finding._asdict() | {"kind": finding.kind.value, "damage": finding.is_damage}
    return {"topic": log.topic, "partition": log.partition} | own


def _print(folder: str, in_use: bool, surveyed: list[Surveyed], damaged: int) -> None:
    if in_use:
        click.echo(f"A broker is running on {folder}: what it writes just now may look unfinished.")
    for log in surveyed:
        for finding in log.findings:
            click.echo(f"{finding.kind.value}: {log.title}")
            click.echo(f"  where  {_place(finding)}")
            click.echo(f"  what   {finding.what}")
            click.echo(f"  do     {finding.advice}")
    partitions = count(sum(not log.is_own for log in surveyed), "partition")
    verdict = f"{count(damaged, 'place')} damaged" if damaged else "nothing is damaged"
    click.echo(f"{partitions} and the metadata log were read: {verdict}.")


def _place(finding: Finding) -> str:
    place = finding.file
    if finding.position is not None:
        place += f", byte {finding.position}"
        place += f" to {finding.end}" if finding.end is not None and finding.end > finding.position else ""
    if finding.offset is not None:
        place += f", offset {finding.offset}"
        if finding.next_offset is not None and finding.next_offset - 1 > finding.offset:
            place += f" to {finding.next_offset - 1}"
    return place
