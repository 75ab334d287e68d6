"""Penstock: a streaming data system in one Python package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import sources
    from penstock.app import App
    from penstock.guarantee import Guarantee
    from penstock.supervisor.run import run

__version__ = "0.1.0"
__all__ = ["App", "Guarantee", "run", "sources"]

_HOMES = {"App": "penstock.app", "Guarantee": "penstock.guarantee", "run": "penstock.supervisor.run"}


def __getattr__(name: str) -> Any:
    """The public names, imported when they are asked for: the command line must start at once."""
    from importlib import import_module

    if name == "sources":
        return import_module("penstock.sources")
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    if name == "App":  # a script that runs itself, and a test, declare functions for Spark without our loader
        import_module("penstock.process.type_texts").read_types_without_spark()
    return getattr(import_module(_HOMES[name]), name)
