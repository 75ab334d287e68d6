"""Python functions of queries: refuses those that cannot travel, and tries each on a worker before the first event."""

from __future__ import annotations

import copyreg
import importlib
import pickle
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.analyze.python_error import last_python_error
from penstock.analyze.task_slots import TaskSlots
from penstock.app import App
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATE_CALLS = "pyspark.sql.streaming.proto.StateMessage_pb2"  # the first event with state imports it
_INSTALL = "run pip install 'penstock[spark]', also where Spark's executors run"
_EXECUTORS_WITHIN_S = 20.0
_LOOK_S = 0.1
_SENDING = "_wrap_function"  # of PySpark, with the function as `func`
_LOOKED_AT_MAX = 2_000  # objects: a function may refer to half a library


class DriverOnlyError(PenstockError, pickle.PicklingError):
    """A Python function refers to what exists only in the process that starts queries."""


class PythonFunction(NamedTuple):
    """A function of a query, as Spark sends it to its workers."""

    name: str
    command: bytes
    libraries: tuple[str, ...]


def refuse_driver_objects() -> None:
    """From now on a function that refers to an App, a session or a DataFrame is refused by name."""
    import pyspark.util
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext, cloudpickle
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
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]  # `_fault` travels, too


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


def fault_on_worker(frame: DataFrame, warn: Callable[[str], None]) -> str | None:
    """Why a Python function of this query cannot run, as one worker of Spark finds it; None if all can.

    Without an executor that could tell, `warn` gets a line, and the first event will tell.
    """
    functions = list(_functions_of(frame))
    if not functions:
        return None
    if not _has_executors(frame.sparkSession):
        warn("Spark has no executors: the Python functions of the queries are not tried before the first event")
        return None
    faults = frame.sparkSession.sparkContext.parallelize(functions, 1).map(_fault).collect()
    for function, fault in zip(functions, faults, strict=True):
        if fault is not None:
            error = last_python_error(fault)
            said = error.words if error is not None else fault
            return f"the function {function.name} cannot be imported by a worker of Spark: {said}{_advice(said)}"
    return None


def _has_executors(spark: SparkSession) -> bool:
    """Those of a cluster come some seconds after the session."""
    slots, deadline = TaskSlots(spark), time.monotonic() + _EXECUTORS_WITHIN_S
    while (count := slots.count()) == 0 and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return bool(count)


def _advice(said: str) -> str:
    return f": {_INSTALL}" if any(name in said for name in ("pandas", "pyarrow", "google", "protobuf")) else ""


def _fault(function: PythonFunction) -> str | None:
    """On a worker: the traceback of an import."""
    try:
        for library in function[2]:
            importlib.import_module(library)
        pickle.loads(function[1])
    except Exception:  # noqa: BLE001  # the user's own code: whatever it raises is told
        return traceback.format_exc()
    return None


def _functions_of(frame: Any) -> Iterator[PythonFunction]:
    """The Python functions in a DataFrame's analyzed plan."""
    jvm = frame.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    waiting = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        waiting += _items(node.children())
        expressions = _items(node.expressions())
        while expressions:
            expression = expressions.pop()
            kind = expression.getClass().getSimpleName()
            if kind in ("PythonUDF", "PythonUDAF", "PythonUDTF"):
                yield _function(jvm, expression)
            if expression.containsPattern(pattern):
                expressions += _items(expression.children())


def _function(jvm: Any, expression: Any) -> PythonFunction:
    function = expression.func()
    command = bytes(function.command().toArray(jvm.scala.reflect.ClassTag.Byte()))
    for broadcast in function.broadcastVars():  # a large one is in a file
        with open(broadcast.value().path(), "rb") as file:
            command = pickle.load(file)
    return PythonFunction(expression.name(), command, _libraries(expression.evalType()))


def _libraries(kind: int) -> tuple[str, ...]:
    """What PySpark imports for a kind of function, by the numbers of its PythonEvalType."""
    if 211 <= kind <= 214:
        return "pandas", "pyarrow", _STATE_CALLS
    return ("pandas", "pyarrow") if 200 <= kind < 300 else ()


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]


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
    """The function or class that refers to an object, and its name for it; looks at what travels, the nearest first."""
    waiting, seen = deque([function]), {id(sys)}
    while waiting and len(seen) < _LOOKED_AT_MAX:
        thing = waiting.popleft()
        if id(thing) in seen or isinstance(thing, ModuleType):
            continue
        seen.add(id(thing))
        own = _own_values(thing)
        for name, value in own:
            if value is wanted:
                return getattr(thing, "__qualname__", type(thing).__qualname__), name
        waiting += [value for _, value in own]
    return None


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
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = set(_names(function.__code__))
    own = [(name, value) for name, value in function.__globals__.items() if name in names]
    return own + [(name, cell.cell_contents) for name, cell in cells]


def _names(code: Any) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if hasattr(inner, "co_names"):
            yield from _names(inner)
