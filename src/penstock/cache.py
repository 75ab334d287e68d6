"""Where this user's machine keeps what can be fetched or made again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str]) -> Path:
    """$PENSTOCK_CACHE, else the user's cache folder."""
    if own := environ.get("PENSTOCK_CACHE"):
        return Path(own).absolute()
    if shared := environ.get("XDG_CACHE_HOME"):
        return Path(shared, "penstock").absolute()
    return Path.home() / ".cache" / "penstock"
