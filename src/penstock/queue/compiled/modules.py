"""Which modules are compiled, and where the ones compiled from just these sources are kept."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from penstock.process.cache import cache_folder

PACKAGE = Path(__file__).parents[2]
DIGESTS = "sha256"  # of every file in the folder, a line each
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))

# What every request passes through.
MODULES = (
    "penstock.queue.core.connection",
    "penstock.queue.core.counters",
    "penstock.queue.core.events",
    "penstock.queue.handlers.fetch",
    "penstock.queue.core.host",
    "penstock.queue.node",
    "penstock.queue.core.notes",
    "penstock.queue.core.batch_openings",
    "penstock.queue.core.partition",
    "penstock.queue.core.pending_produce",
    "penstock.queue.handlers.produce",
    "penstock.queue.core.produce_template",
    "penstock.queue.core.replies",
    "penstock.queue.core.memory_budget",
    "penstock.queue.handlers.produce_fast",
    "penstock.queue.core.sync_jobs",
    "penstock.queue.core.waiting_fetch",
    "penstock.queue.core.waiting_request",
    "penstock.queue.log.index",
    "penstock.queue.log.log",
    "penstock.queue.log.point",
    "penstock.queue.log.producers",
    "penstock.queue.log.reading",
    "penstock.queue.log.segment",
    "penstock.queue.log.durable_point",
    "penstock.queue.log.durable_point_file",
    "penstock.kafka.records.batch",
    "penstock.kafka.records.compression",
    "penstock.kafka.records.framing",
    "penstock.kafka.records.opening",
    "penstock.queue.server.channel",
    "penstock.queue.server.disk",
    "penstock.queue.server.durable_extent",
    "penstock.queue.server.event_loop",
    "penstock.queue.server.sync_pool",
    "penstock.queue.server.transport",
    "penstock.kafka.wire.fetch",
    "penstock.kafka.wire.header",
    "penstock.kafka.wire.produce",
    "penstock.kafka.wire.raw",
    "penstock.kafka.wire.produce_shape",
)
# What is compiled relies on the types of what it imports.
_RELIED_ON = (
    "*.py",
    "config/*.py",
    "kafka/**/*.py",
    "process/*.py",
    "queue/**/*.py",
)


def source_path(module: str) -> Path:
    """The file of a module of ours, below the folder that holds the package."""
    return Path(*module.split(".")).with_suffix(".py")


def relied_on(package: Path = PACKAGE) -> list[Path]:
    """The sources that decide what the compiled modules do: their own, and each that they import."""
    return sorted({path for pattern in _RELIED_ON for path in package.glob(pattern)})


def compiled_folder(cache: Path, package: Path = PACKAGE) -> Path:
    """Its name tells the sources and the Python: what was compiled from others is never found."""
    digest = hashlib.sha256(SUFFIX.encode())
    for path in relied_on(package):
        digest.update(f"\0{path.relative_to(package)}\0".encode())
        digest.update(path.read_bytes())
    return cache / "compiled" / digest.hexdigest()[:16]


def find_compiled(environ: Mapping[str, str]) -> Path | None:
    """The folder of those made from the sources at hand; None if there is none that is whole, or nobody can look."""
    try:
        folder = compiled_folder(cache_folder(environ))
        return folder if is_whole(folder) else None
    except (OSError, RuntimeError):  # a service may have no home, or one that it must not enter
        return None


def why_interpreted(environ: Mapping[str, str]) -> str:
    """Why `find_compiled` found none, for people."""
    try:
        folder = compiled_folder(cache_folder(environ))
        if folder.is_dir():
            return f"what was compiled is damaged, in {folder}"
        if any(other.is_dir() for other in folder.parent.glob("[0-9a-f]*")):
            return "what was compiled is of other sources or of another Python"
    except (OSError, RuntimeError) as error:
        return f"the cache folder cannot be looked into: {error}"
    return "nothing was compiled yet"


def is_whole(folder: Path) -> bool:
    """Whether every file is as it was made: a library that is cut short kills whoever loads it."""
    try:
        lines = (folder / DIGESTS).read_text().splitlines()
        pairs = [line.split(maxsplit=1) for line in lines]
        return bool(pairs) and all(digest_of(folder / name) == told for told, name in pairs)
    except (FileNotFoundError, NotADirectoryError):
        return False


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
