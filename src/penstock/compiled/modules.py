"""Which modules are compiled, and where the ones compiled from just these sources are kept."""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))

# What every request passes through. Not broker.events: tuples with names are no quicker compiled.
MODULES = (
    "penstock.broker.connection",
    "penstock.broker.counters",
    "penstock.broker.fetch",
    "penstock.broker.loads",
    "penstock.broker.node",
    "penstock.broker.partition",
    "penstock.broker.produce",
    "penstock.broker.room",
    "penstock.broker.syncs",
    "penstock.broker.timers",
    "penstock.log.index",
    "penstock.log.log",
    "penstock.log.point",
    "penstock.log.producers",
    "penstock.log.reading",
    "penstock.log.segment",
    "penstock.log.witness",
    "penstock.log.witness_file",
    "penstock.records.batch",
    "penstock.runtime.channel",
    "penstock.runtime.disk",
    "penstock.runtime.loop",
    "penstock.runtime.syncing",
    "penstock.wire.fetch",
    "penstock.wire.header",
    "penstock.wire.produce",
    "penstock.wire.raw",
    "penstock.wire.shape",
)
_RELIED_ON = ("penstock.broker.events", "penstock.config", "penstock.errors", "penstock.ports", "penstock.topic_config")


def source_path(module: str) -> Path:
    """The file of a module of ours, below the folder that holds the package."""
    return Path(*module.split(".")).with_suffix(".py")


def compiled_folder(cache: Path) -> Path:
    """Its name tells the sources and the Python: what was compiled from others is never found."""
    digest = hashlib.sha256(SUFFIX.encode())
    for module in (*MODULES, *_RELIED_ON):
        digest.update((PACKAGE.parent / source_path(module)).read_bytes())
    return cache / "compiled" / digest.hexdigest()[:16]
