"""Finds the App that a user named: a file or a module, and in it a variable."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from penstock.app import App
from penstock.errors import ConfigError
from penstock.plan.plan import Plan
from penstock.process.type_texts import read_types_without_spark

MISSING_LIBRARY = " (run pip install 'penstock[spark]')"
_NO_SPARK = "which is not installed: run pip install 'penstock[spark]'"
_OF_EXTRA = ("numpy", "pandas", "pyarrow")  # that people import themselves
MODULE_NAME = "penstock_app"  # not __main__: what stands under "if __name__ == '__main__'" must not run again
_under_way: list[str] = []
folders: list[str] = []  # that were put on the path for apps: what lies there is theirs
apps: list[ModuleType] = []  # the modules that declare them


def is_loading() -> bool:
    """Whether an app is being imported right now, by us."""
    return bool(_under_way)


def load_app(spec: str) -> App:
    """The app of 'shop.py', 'shop.py:shop' or 'package.module:shop'; ConfigError if there is not exactly one."""
    place, _, variable = spec.partition(":")
    module = _module(place)
    if variable:
        found = getattr(module, variable, None)
        if not isinstance(found, App):
            raise ConfigError(f"{place} has no App called {variable}")
        return _with_places(found, module)
    apps = {id(value): (name, value) for name, value in vars(module).items() if isinstance(value, App)}
    if len(apps) == 1:
        return _with_places(next(iter(apps.values()))[1], module)
    if not apps:
        raise ConfigError(f"{place} declares no App: write app = penstock.App('name')")
    names = ", ".join(f"{place}:{name}" for name, _ in apps.values())
    raise ConfigError(f"{place} declares {len(apps)} Apps: name one of {names}")


def _with_places(app: App, module: ModuleType) -> App:
    """The app with absolute paths of its tables: a relative one is beside the file of the app."""
    folder = Path(module.__file__ or ".").resolve().parent
    app.tables = [
        replace(table, path=str(folder / table.path))
        if isinstance(table.path, str) and table.path and "://" not in table.path
        else table
        for table in app.tables
    ]
    return app


def need_spark(plan: Plan) -> None:
    """ConfigError if the plan has queries and this Python has no PySpark, which is an extra of the package."""
    if plan.queries and not _is_spark_there():
        raise ConfigError(f"the queries run on Spark, {_NO_SPARK}")


def _is_spark_there() -> bool:
    try:
        return importlib.util.find_spec("pyspark") is not None
    except ImportError:
        return False


def _module(place: str) -> ModuleType:
    path = Path(place)
    _under_way.append(place)
    read_types_without_spark()
    try:
        if path.suffix != ".py":
            folders.append(str(Path.cwd()))
            sys.path.insert(0, folders[-1])
            apps.append(importlib.import_module(place))
            return apps[-1]
        if not path.is_file():
            raise ConfigError(f"there is no file {place}")
        folders.append(str(path.resolve().parent))
        sys.path.insert(0, folders[-1])  # an app may import what lies beside it
        found = importlib.util.spec_from_file_location(MODULE_NAME, path)
        if found is None or found.loader is None:
            raise ConfigError(f"{place} is no Python file")
        module = importlib.util.module_from_spec(found)
        sys.modules[MODULE_NAME] = module
        found.loader.exec_module(module)
        apps.append(module)
        return module
    except ConfigError:
        raise
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] == "pyspark" and not _is_spark_there():
            raise ConfigError(f"{place} imports pyspark, {_NO_SPARK}") from missing
        raise _import_error(place, missing) from missing
    except Exception as error:  # the user's own code: whatever it raises is told, not thrown at them
        raise _import_error(place, error) from error
    finally:
        _under_way.pop()


def _import_error(place: str, error: Exception) -> ConfigError:
    said = f"{_where(error, place)}{type(error).__name__}: {error}{_way_out(error)}"
    return ConfigError(f"{place} cannot be imported: {said}")


def _way_out(error: Exception) -> str:
    """What to do about an error of PySpark that comes before Spark runs; it asserts that there is a context."""
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    is_asserted = isinstance(error, AssertionError) and "/pyspark/" in raised_in
    if is_asserted or "SESSION_OR_CONTEXT_NOT_EXISTS" in str(error):
        return " (columns and sessions need a running Spark: use them inside the function of a query)"
    is_missing = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _OF_EXTRA
    return MISSING_LIBRARY if is_missing or "PACKAGE_NOT_INSTALLED" in str(error) else ""


def _where(error: Exception, place: str) -> str:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) in (Path(place), Path(place).resolve()):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}: " if line else ""
