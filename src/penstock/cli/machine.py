"""What a machine must have to run Penstock, checked one by one."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from penstock.addresses import parse_address
from penstock.cache import cache_folder
from penstock.config import BrokerConfig
from penstock.errors import ConfigError

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
        lambda: _java(environ),
        lambda: _jars(environ),
        lambda: _compiled(config, environ),
        lambda: _data(Path(config.data)),
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


def _java(environ: Mapping[str, str]) -> Check:
    from penstock.jvm.java import find_java, java_version

    try:
        java = find_java(environ)
    except ConfigError as error:
        return Check("java", NOTE, f"{error}; only Apache Kafka and Spark need it")
    return Check("java", OK, f"{java_version(java)} at {java}")


def _jars(environ: Mapping[str, str]) -> Check:
    from penstock.jvm.jars import KAFKA_LOCK, read_lock

    folder = cache_folder(environ) / "jars"
    jars = read_lock(KAFKA_LOCK)
    there = sum(jar.path_in(folder).exists() for jar in jars)
    if there < len(jars):
        return Check("jars", NOTE, f"{there} of {len(jars)} in {folder}; the rest is fetched when it is needed")
    return Check("jars", OK, f"{there} of {len(jars)} in {folder}")


def _compiled(config: BrokerConfig, environ: Mapping[str, str]) -> Check:
    from penstock.compiled.modules import find_compiled, why_interpreted

    if (folder := find_compiled(environ)) is None:
        why = why_interpreted(environ)
        return Check("compiled", NOTE, f"the broker runs interpreted: {why}; 'penstock compile' makes it faster")
    if not config.compiled:
        return Check("compiled", NOTE, "the broker runs interpreted: compiled = false in its settings")
    return Check("compiled", OK, f"the broker's hot modules are in {folder}")


def _data(folder: Path) -> Check:
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
