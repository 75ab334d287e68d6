"""Where this user's machine keeps what can be fetched or made again."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """$PENSTOCK_CACHE, else the user's cache folder."""
    if own := environ.get("PENSTOCK_CACHE"):
        return Path(own).absolute()
    if shared := environ.get("XDG_CACHE_HOME"):
        return Path(shared, "penstock").absolute()
    return Path.home() / ".cache" / "penstock"


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Whoever else wants this lock waits: it will find fetched or made what it came for."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
