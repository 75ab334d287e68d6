"""Tries the Python functions of a query on a worker of Spark, before the first event."""

from __future__ import annotations

import importlib
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.analyze import function_references
from penstock.analyze.frames.plans import analyzed_plan, items
from penstock.analyze.function_references import missing_modules
from penstock.analyze.python_error import last_python_error
from penstock.analyze.task_slots import TaskSlots

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_STATE_CALLS = "pyspark.sql.streaming.proto.StateMessage_pb2"  # the first event with state imports it
_OF_STATE = range(211, 215)  # numbers of PySpark's PythonEvalType
_OF_ARROW = range(200, 300)
_INSTALL = "run pip install 'penstock[spark]', also where Spark's executors run"
_EXECUTORS_WITHIN_S = 20.0
_LOOK_S = 0.1
_BROADCAST, _BROADCAST_BYTES_MAX = b"pyspark.core.broadcast", 200


class _Function(NamedTuple):
    name: str
    command: bytes
    libraries: tuple[str, ...]


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
    from pyspark import cloudpickle

    for module in (sys.modules[__name__], function_references):  # what runs on the worker travels whole
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # it has no types
    sent = [(function.command, function.libraries) for function in functions]
    faults = frame.sparkSession.sparkContext.parallelize(sent, 1).map(_fault).collect()
    for function, fault in zip(functions, faults, strict=True):
        if fault is not None:
            error = last_python_error(fault)
            said = error.words if error is not None else fault
            return f"the function {function.name} cannot run on a worker of Spark: {said}{_advice(said)}"
    return None


def _has_executors(spark: SparkSession) -> bool:
    """Those of a cluster come some seconds after the session."""
    slots, deadline = TaskSlots(spark), time.monotonic() + _EXECUTORS_WITHIN_S
    while (count := slots.count()) == 0 and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return bool(count)


def _advice(said: str) -> str:
    return f": {_INSTALL}" if any(name in said for name in ("pandas", "pyarrow", "google", "protobuf")) else ""


def _fault(sent: tuple[bytes, tuple[str, ...]]) -> str | None:
    """On a worker: the traceback of an import."""
    command, libraries = sent
    try:
        for library in libraries:
            importlib.import_module(library)
        function = pickle.loads(command)
    except Exception as error:  # noqa: BLE001  # the user's own code: whatever it raises is told
        # A function with a broadcast variable has it with its first event only.
        return None if "BROADCAST_VARIABLE_NOT_LOADED" in str(error) else traceback.format_exc()
    for module, file, line, name in missing_modules(function):
        where = f'Traceback (most recent call last):\n  File "{file}", line {line}, in {name}\n'
        return f"{where}ModuleNotFoundError: No module named '{module}'\n"
    return None


def _functions_of(frame: Any) -> Iterator[_Function]:
    """The Python functions in a DataFrame's analyzed plan."""
    jvm = frame.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    waiting = [analyzed_plan(frame)]
    while waiting:
        node = waiting.pop()
        if not node.containsPattern(pattern):  # each look at an expression is a call of the JVM
            continue
        waiting += items(node.children())
        expressions = items(node.expressions())
        while expressions:
            expression = expressions.pop()
            kind = expression.getClass().getSimpleName()
            if kind in ("PythonUDF", "PythonUDAF"):
                yield _function(jvm, expression)
            if expression.containsPattern(pattern):
                expressions += items(expression.children())


def _function(jvm: Any, expression: Any) -> _Function:
    function = expression.func()
    command = bytes(function.command().toArray(jvm.scala.reflect.ClassTag.Byte()))
    if len(command) < _BROADCAST_BYTES_MAX and _BROADCAST in command:  # PySpark sends a large one by a file
        with open(next(iter(function.broadcastVars())).value().path(), "rb") as file:
            command = pickle.load(file)
    return _Function(expression.name(), command, _libraries(expression.evalType()))


def _libraries(kind: int) -> tuple[str, ...]:
    """What PySpark imports at the first event for a function of this kind."""
    if kind in _OF_STATE:
        return "pandas", "pyarrow", _STATE_CALLS
    return ("pandas", "pyarrow") if kind in _OF_ARROW else ()
