"""Lets PySpark read the text of a type, as in `@udf("double")`, while no JVM of Spark runs.

PySpark asks its JVM what a text means. An app declares its functions before there is one, and some processes that
import it never have one. Our parser reads the text as long as PySpark could only raise SESSION_OR_CONTEXT_NOT_EXISTS.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from penstock.events.schema import SchemaError
from penstock.events.type_json import type_json

_MODULE = "pyspark.sql.types"
_ASKED = "get_active_spark_context"  # what that module asks for the one that parses


def read_types_without_spark() -> None:
    """From now on, also if PySpark is imported later; where it is not installed, nothing happens."""
    # PySpark says so of each function whose hints are not those of a pandas function, as `n: int`.
    warnings.filterwarnings("ignore", message="Cannot infer the eval type from type hints", category=UserWarning)
    if (types := sys.modules.get(_MODULE)) is not None:
        _stand_in(types)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds one module as Python does, and is gone."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                _stand_in(module)

            loader.exec_module = exec_module
        return spec


class _Parser:
    """Of all that PySpark asks its context for, it parses types; for the rest PySpark says what it always said."""

    def __init__(self, types: Any, ask: Callable[[], Any]) -> None:
        self._types = types
        self._ask = ask

    def _parse_ddl(self, text: str) -> Any:
        try:
            found = type_json(text)
        except SchemaError as wrong:
            raise SchemaError(f"the type {text!r} cannot be read before Spark runs: {wrong}") from None
        return self._types._parse_datatype_json_string(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask(), name)


def _stand_in(types: Any) -> None:
    ask = getattr(types, _ASKED)
    if getattr(ask, "is_of_penstock", False):
        return

    def context() -> Any:
        pyspark: Any = sys.modules["pyspark"]
        running = pyspark.SparkContext._active_spark_context
        return _Parser(types, ask) if running is None or running._jvm is None else running

    context.is_of_penstock = True  # type: ignore[attr-defined]
    setattr(types, _ASKED, context)
