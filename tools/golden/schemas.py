"""Kafka's own message schemas, as its client jar carries them, and values that fit them."""

from __future__ import annotations

import base64
import itertools
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
# Longer than a compact length of one byte can say.
_LONG_TEXT = "long-" * 26
CASES = ("defaults", "bare", "full", "nulls")


def read_schema(jar: Path, name: str) -> Schema:
    """The schema of one message."""
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(f"common/message/{name}.json").decode()
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("//"))
    schema: Schema = json.loads("\n".join(lines))
    _inline(schema["fields"], {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])})
    return schema


def _inline(fields: list[Schema], shared: dict[str, list[Schema]]) -> None:
    """Put the fields of structs that a schema names once where they are used."""
    for field in fields:
        kind = field["type"].removeprefix("[]")
        if kind in shared:
            field["fields"] = shared[kind]
        _inline(field.get("fields", []), shared)


def versions(schema: Schema) -> range:
    """The versions a schema defines."""
    first, last = _span(schema["validVersions"])
    return range(first, last + 1)


def make_values(schema: Schema, version: int) -> dict[str, dict[str, Any]]:
    """Field values by case, without cases that say the same as another."""
    values: dict[str, dict[str, Any]] = {}
    for case in CASES:
        value = make_value(schema, version, case)
        if value not in values.values():
            values[case] = value
    return values


def make_value(schema: Schema, version: int, case: str) -> dict[str, Any]:
    """Field values for one case.

    All defaults; the same with one element in each array of structs; no defaults at all; null wherever it may be.
    """
    numbers = itertools.count(1)
    return _struct(schema["fields"], version, case, numbers, 0)


def _span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first.rstrip("+")), 32_767 if text.endswith("+") else int(last or first)


def _is_in(text: str | None, version: int) -> bool:
    if text is None or text == "none":
        return False
    first, last = _span(text)
    return first <= version <= last


def _struct(fields: list[Schema], version: int, case: str, numbers: Iterator[int], depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for field in fields:
        if not _is_in(field["versions"], version):
            continue
        name = field["name"][0].lower() + field["name"][1:]
        is_array = field["type"].startswith("[]")
        if case == "bare" and is_array and "fields" in field:
            value[name] = [_struct(field["fields"], version, case, numbers, depth + 1)]
        elif case in ("defaults", "bare"):
            is_struct = "fields" in field and not is_array and field.get("default") != "null"
            value[name] = _struct(field["fields"], version, case, numbers, depth) if is_struct else _default(field)
        elif case == "nulls" and _is_in(field.get("nullableVersions"), version):
            value[name] = None
        else:
            value[name] = _field(field, version, case, numbers, depth)
    return value


def _default(field: Schema) -> Any:
    kind, default = field["type"], field.get("default")
    if kind.startswith("[]") and default != "null":
        return []
    if default == "null" or (kind == "records" and default is None):
        return None
    if kind in _BITS or kind == "uint16":
        return int(str(default or 0), 0)
    if kind == "bool":
        return default == "true"
    if kind == "uuid":
        return _uuid(bytes(16))
    return default or ""


def _field(field: Schema, version: int, case: str, numbers: Iterator[int], depth: int) -> Any:
    kind = field["type"]
    if not kind.startswith("[]"):
        return _one(kind, field, version, case, numbers, depth)
    # Two elements show the order; deeper down they would only double the files.
    size = 2 if depth == 0 or "fields" not in field else 1
    return [_one(kind[2:], field, version, case, numbers, depth + 1) for _ in range(size)]


def _one(kind: str, field: Schema, version: int, case: str, numbers: Iterator[int], depth: int) -> Any:
    if "fields" in field:
        return _struct(field["fields"], version, case, numbers, depth)
    number = next(numbers)
    if kind in _BITS:
        edge = 1 << (_BITS[kind] - 1)
        made = (number, edge - 1 - number, number - edge)[number % 3]
        return made if str(made) != field.get("default") else made + 1
    if kind == "uint16":
        return 65_535 - number
    if kind == "bool":
        return field.get("default") != "true"
    if kind == "uuid":
        return _uuid(bytes((number + each) % 256 for each in range(16)))
    if kind in ("records", "bytes"):
        return base64.b64encode(bytes(range(number % 7 + 1))).decode()
    if kind == "string":
        return _LONG_TEXT if number % 9 == 3 else f"é☃{number}"
    raise ValueError(f"a type nobody taught this tool: {kind}")


def _uuid(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
