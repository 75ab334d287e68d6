"""The app's own code that a function uses, as a digest: in its file, and in modules beside it."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.process.app_loader import folders

_DIGEST_LENGTH = 32
_PLAIN = (str, bytes, int, float, bool, type(None), Decimal, date, time, timedelta, Enum)
_NOT_OURS = ("site-packages", "dist-packages")


def text_digest(text: str) -> str:
    """The digest of a SQL text; white space does not count."""
    return _digest([" ".join(text.split())])


def function_digest(function: Callable[..., Any]) -> str:
    """The digest of a function and of all of the app's own code that it can reach; comments do not count."""
    return _digest(_sources(function).values())


def used_digest(function: Callable[..., Any], names: Iterable[str]) -> str:
    """The digest of the Python functions of these names that `function` reaches.

    It is that of all that `function` reaches if one is not found.
    """
    wanted = set(names)
    if not wanted:
        return ""
    found = {name: part for part in _reached(function) if (name := getattr(part, "__name__", None)) in wanted}
    if found.keys() != wanted:
        return function_digest(function)
    return _digest(text for name in sorted(found) for text in _sources(found[name]).values())


def _digest(texts: Iterable[str]) -> str:
    return sha256("\0".join(sorted(texts)).encode()).hexdigest()[:_DIGEST_LENGTH]


def _reached(function: Callable[..., Any]) -> list[Any]:
    seen: dict[int, Any] = {}
    waiting: list[Any] = [function]
    while waiting:
        value = _bare(waiting.pop())
        if id(value) in seen or not _is_own(value):
            continue
        seen[id(value)] = value
        waiting += [used for _, used in _uses(value)]
    return list(seen.values())


def _sources(function: Callable[..., Any]) -> dict[str, str]:
    """The text of each function, class and module that is reached, and the plain values that they name."""
    found = {}
    for part in _reached(function):
        name = f"{_module_of(part)}.{getattr(part, '__qualname__', part.__name__)}"
        plain = [f"{used}={_plain_text(value)}" for used, value in _uses(part) if _is_plain(value)]
        found[name] = "\n".join([name, _text(part), *sorted(plain)])
    return found


def _bare(value: Any) -> Any:
    """The function in a UDF, a partial or a bound method."""
    while True:
        if isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        elif not isinstance(value, type) and callable(inside := getattr(value, "__dict__", {}).get("func")):
            value = inside  # PySpark's user-defined functions
        elif callable(inside := getattr(value, "__wrapped__", None)):
            value = inside
        else:
            return value


def _is_own(value: Any) -> bool:
    if not isinstance(value, FunctionType | type | ModuleType):
        return False
    module = value if isinstance(value, ModuleType) else sys.modules.get(_module_of(value))
    file = getattr(module, "__file__", None)
    if file is None:
        return False
    path = Path(file).resolve()
    if any(part in _NOT_OURS for part in path.parts) or path.is_relative_to(Path(sys.base_prefix, "lib").resolve()):
        return False
    return any(path.is_relative_to(Path(folder).resolve()) for folder in folders)


def _module_of(value: Any) -> str:
    return str(value.__name__ if isinstance(value, ModuleType) else value.__module__)


def _uses(value: Any) -> Iterator[tuple[str, Any]]:
    """What a function, a class or a module refers to by name."""
    if isinstance(value, ModuleType):
        for name, used in vars(value).items():
            if isinstance(used, ModuleType) or (
                isinstance(used, FunctionType | type) and used.__module__ != value.__name__
            ):
                yield name, used
    elif isinstance(value, type):
        yield from ((base.__name__, base) for base in value.__bases__)
        yield from ((name, used) for name, used in vars(value).items() if isinstance(used, FunctionType))
    else:
        yield from _uses_of_function(value)


def _uses_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name in sorted(_global_names(function.__code__)):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for number, default in enumerate(function.__defaults__ or ()):
        yield f"default {number}", default


def _global_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for inside in code.co_consts:
        if isinstance(inside, CodeType):
            names |= _global_names(inside)
    return names


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(_is_plain(key) and _is_plain(one) for key, one in value.items())
    return isinstance(value, _PLAIN)


def _plain_text(value: Any) -> str:
    """The same in each process: a set has no order."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_plain_text, value)))}}}"
    return repr(value)


def _text(value: Any) -> str:
    """Its source without comments, docstrings and decorators; what it was compiled to, where there is no source."""
    try:
        source = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError):
        return value.__code__.co_code.hex() if isinstance(value, FunctionType) else ""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source  # a lambda in the middle of an expression
    if not isinstance(value, ModuleType) and isinstance(tree.body[0], ast.FunctionDef | ast.ClassDef):
        tree.body[0].decorator_list = []  # they have the options of the query
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)
