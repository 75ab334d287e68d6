"""Imports the compiled modules in place of their sources, where they have been made."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from penstock.errors import ConfigError
from penstock.queue.compiled.modules import MODULES, SUFFIX, find_compiled


class _Finder(MetaPathFinder):
    """Finds modules in a folder made by penstock.queue.compiled.make."""

    def __init__(self, folder: Path) -> None:
        paths = folder.rglob(f"*{SUFFIX}")
        self._paths = {_module_name(path.relative_to(folder)): path for path in paths}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        found = self._paths.get(fullname)
        return spec_from_file_location(fullname, found) if found is not None else None


def use_compiled(environ: Mapping[str, str]) -> bool:
    """From here on the hot modules are the compiled ones; False, and nothing done, if none were made of these sources.

    Nor is anything done if one has been imported already: a compiled module does not work with one that is not.
    """
    folder = find_compiled(environ)
    if folder is None or any(module in sys.modules for module in MODULES):
        return False
    sys.meta_path.insert(0, _Finder(folder))
    try:
        for module in MODULES:
            import_module(module)
    except ImportError as error:
        remedy = "remove it and run 'penstock compile' again, or set compiled = false"
        raise ConfigError(f"{folder} cannot be used ({error}): {remedy}") from None
    with suppress(OSError):
        os.utime(folder)  # those not used for longest are forgotten first
    return True


def is_compiled() -> bool:
    """Whether this process uses them."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def _module_name(path: Path) -> str:
    return ".".join([*path.parts[:-1], path.name.removesuffix(SUFFIX)])
