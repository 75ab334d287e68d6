"""What a Python function of a query refers to: refuses, by name, what cannot travel to a worker of Spark."""

from __future__ import annotations

import copyreg
import dis
import importlib.util
import pickle
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.app import App
from penstock.errors import PenstockError

_SENDING = "_wrap_function"  # of PySpark, with the function as `func`
_LOOKED_AT_MAX = 2_000  # objects: a function may refer to half a library


class DriverOnlyError(PenstockError, pickle.PicklingError):
    """A Python function refers to what exists only in the process that starts queries."""


def refuse_driver_objects() -> None:
    """From now on a function that refers to an App, a session or a DataFrame is refused by name."""
    import pyspark.util
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.classic.column import Column
    from pyspark.sql.classic.dataframe import DataFrame

    kinds = {
        App: "an App", SparkSession: "a Spark session", SparkContext: "Spark's context", DataFrame: "a DataFrame",
        Column: "a column of Spark", JavaObject: "an object of Spark's JVM",
    }  # fmt: skip
    for kind, words in kinds.items():
        copyreg.pickle(kind, partial(_refuse, words))  # type: ignore[arg-type]  # it never returns what it should
    pyspark.util.print_exec = lambda stream: None  # a trace of what is refused in a line


def unpicklable_words(error: BaseException) -> str | None:
    """The function that PySpark could not send, and what hinders it; None if this is another error."""
    if not isinstance(error, pickle.PicklingError) or isinstance(error, DriverOnlyError):
        return None
    function, trace = None, error.__traceback__
    while trace is not None and function is None:
        if trace.tb_frame.f_code.co_name == _SENDING:
            function = trace.tb_frame.f_locals.get("func")
        trace = trace.tb_next
    if function is None:
        return None
    variable = next((name for name, value in _own_values(function) if not _is_picklable(value)), "something")
    why = str(error).removeprefix("Could not serialize object: ")
    return f"the function {_name_of(function)} refers to {variable}, which cannot travel to a worker: {why}"


def _is_picklable(value: object) -> bool:
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # it has no types
    except Exception:  # noqa: BLE001  # the user's own objects may raise anything
        return False
    return True


def _name_of(function: object) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def missing_modules(function: object) -> Iterator[tuple[str, str, int, str]]:
    """On a worker: each module that is imported inside a function and is not there: its name, file, line and function.

    Only code that travelled is looked at, and none that catches errors: it may do without a module.
    """
    for _, thing in _nearby(function):
        if not isinstance(thing, FunctionType) or _is_importable(thing):
            continue
        for code in _codes(thing.__code__):
            if code.co_exceptiontable:
                continue
            level = 0
            for step in dis.get_instructions(code):
                name = str(step.argval).partition(".")[0]
                if step.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and isinstance(step.argval, int):
                    level = step.argval
                elif step.opname == "IMPORT_NAME" and level == 0 and importlib.util.find_spec(name) is None:
                    line = step.positions.lineno if step.positions else None
                    yield name, code.co_filename, line or code.co_firstlineno, code.co_name


def _is_importable(function: FunctionType) -> bool:
    return getattr(sys.modules.get(function.__module__), function.__name__, None) is function


def _refuse(words: str, found: object) -> None:
    function = _in_hand()
    user, variable = _reference(function, found) or (_name_of(function), "")
    raise DriverOnlyError(
        f"the function {user} refers to {variable or 'something'}, which is {words}: Spark's workers have none. "
        "Give the function plain values instead, made outside of it"
    )


def _in_hand() -> Any:
    """The function that PySpark is sending."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == _SENDING:
            return frame.f_locals.get("func")
    return None


def _reference(function: object, wanted: object) -> tuple[str, str] | None:
    """The function or class that refers to an object, and its name for it."""
    for own, thing in _nearby(function):
        for name, value in own:
            if value is wanted:
                return getattr(thing, "__qualname__", type(thing).__qualname__), name
    return None


def _nearby(function: object) -> Iterator[tuple[list[tuple[str, Any]], Any]]:
    """A function, and what it refers to, the nearest first: what each refers to by which name, and the thing itself."""
    waiting: deque[Any] = deque([function])
    seen: set[int] = set()
    while waiting and len(seen) < _LOOKED_AT_MAX:
        thing = waiting.popleft()
        if id(thing) not in seen and not isinstance(thing, ModuleType):
            seen.add(id(thing))
            own = _own_values(thing)
            yield own, thing
            waiting += [value for _, value in own]


def _own_values(thing: Any) -> list[tuple[str, Any]]:
    if isinstance(thing, FunctionType):
        return _referred(thing)
    if isinstance(thing, MethodType):
        return [("self", thing.__self__), (thing.__name__, thing.__func__)]
    if isinstance(thing, partial):
        return [*_own_values([thing.func, *thing.args]), *thing.keywords.items()]
    if isinstance(thing, tuple | list):
        return [("an argument", value) for value in thing]
    if isinstance(thing, type):
        return [(name, value) for name, value in vars(thing).items() if isinstance(value, FunctionType)]
    return [*getattr(thing, "__dict__", {}).items(), ("its class", type(thing))]


def _referred(function: FunctionType) -> list[tuple[str, Any]]:
    found = {name for code in _codes(function.__code__) for name in code.co_names}
    own = [(name, value) for name, value in function.__globals__.items() if name in found]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            own.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    return own


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those inside it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)
