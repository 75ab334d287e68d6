"""Which modules are compiled, and where the ones compiled from just these sources are kept."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from penstock.cache import cache_folder

PACKAGE = Path(__file__).parent.parent
DIGESTS = "sha256"  # of every file in the folder, a line each
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))

# What every request passes through.
MODULES = (
    "penstock.broker.connection",
    "penstock.broker.counters",
    "penstock.broker.events",
    "penstock.broker.fetch",
    "penstock.broker.host",
    "penstock.broker.node",
    "penstock.broker.notes",
    "penstock.broker.openings",
    "penstock.broker.partition",
    "penstock.broker.pending_produce",
    "penstock.broker.produce",
    "penstock.broker.produce_template",
    "penstock.broker.replies",
    "penstock.broker.room",
    "penstock.broker.shaped_produce",
    "penstock.broker.syncs",
    "penstock.broker.waiting_fetch",
    "penstock.broker.waiting_request",
    "penstock.log.index",
    "penstock.log.log",
    "penstock.log.point",
    "penstock.log.producers",
    "penstock.log.reading",
    "penstock.log.segment",
    "penstock.log.witness",
    "penstock.log.witness_file",
    "penstock.records.batch",
    "penstock.records.compression",
    "penstock.records.framing",
    "penstock.records.opening",
    "penstock.runtime.channel",
    "penstock.runtime.disk",
    "penstock.runtime.extent",
    "penstock.runtime.loop",
    "penstock.runtime.syncing",
    "penstock.runtime.transport",
    "penstock.wire.fetch",
    "penstock.wire.header",
    "penstock.wire.produce",
    "penstock.wire.raw",
    "penstock.wire.shape",
)
# What is compiled relies on the types of what it imports.
_RELIED_ON = ("*.py", "broker/**/*.py", "compiled/*.py", "log/*.py", "records/*.py", "runtime/*.py", "wire/**/*.py")


def source_path(module: str) -> Path:
    """The file of a module of ours, below the folder that holds the package."""
    return Path(*module.split(".")).with_suffix(".py")


def compiled_folder(cache: Path, package: Path = PACKAGE) -> Path:
    """Its name tells the sources and the Python: what was compiled from others is never found."""
    digest = hashlib.sha256(SUFFIX.encode())
    for path in sorted({path for pattern in _RELIED_ON for path in package.glob(pattern)}):
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
