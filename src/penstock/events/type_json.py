"""The text of any Spark type as the JSON that PySpark makes its types of. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from penstock.events.schema import DdlReader, SchemaError

_PLAIN = {
    "BOOLEAN": "boolean", "TINYINT": "byte", "BYTE": "byte", "SMALLINT": "short", "SHORT": "short",
    "INT": "integer", "INTEGER": "integer", "BIGINT": "long", "LONG": "long", "FLOAT": "float", "REAL": "float",
    "DOUBLE": "double", "STRING": "string", "BINARY": "binary", "DATE": "date", "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz", "VARIANT": "variant", "VOID": "void",
}  # fmt: skip
_SIZED = {"VARCHAR": "varchar", "CHAR": "char", "CHARACTER": "char"}
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_DECIMAL_DIGITS_MAX = 38
_WORDS = {*_PLAIN, *_SIZED, *_DECIMAL, "ARRAY", "MAP", "STRUCT"}


def type_json(text: str) -> str:
    """What Spark's own parser answers: of a type (`double`, `array<int>`), or of columns (`a int, b string`).

    SchemaError if the text is neither, or one of the few types that only Spark reads (intervals, collations).
    """
    try:
        return json.dumps(_one_type(text))
    except SchemaError as wrong:
        try:
            return json.dumps(_struct(DdlReader(text), end=""))
        except SchemaError as wrong_too:
            raise (wrong_too if _begins_with_a_column(text) else wrong) from None


def _begins_with_a_column(text: str) -> bool:
    first, _, rest = text.strip().partition(" ")
    return bool(rest) and first.upper().partition("<")[0].partition("(")[0] not in _WORDS


def _one_type(text: str) -> Any:
    reader = DdlReader(text)
    kind = _type(reader)
    if reader.token:
        raise SchemaError(f"expected the end, found {reader.token!r}")
    return kind


def _type(reader: DdlReader) -> Any:
    word = reader.take().upper()
    if word in _PLAIN:
        return _PLAIN[word]
    if word in _SIZED:
        reader.expect("(")
        size = reader.take()
        reader.expect(")")
        if not size.isdigit():
            raise SchemaError(f"{word} takes a number, not {size!r}")
        return f"{_SIZED[word]}({size})"
    if word in _DECIMAL:
        return _decimal(reader)
    if word == "ARRAY":
        reader.expect("<")
        item = _type(reader)
        reader.expect(">")
        return {"type": "array", "elementType": item, "containsNull": True}
    if word == "MAP":
        reader.expect("<")
        key = _type(reader)
        reader.expect(",")
        value = _type(reader)
        reader.expect(">")
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if word == "STRUCT":
        reader.expect("<")
        return _struct(reader, end=">")
    raise SchemaError(f"no type of Spark: {word.lower() or 'the text ends'}")


def _decimal(reader: DdlReader) -> str:
    digits, scale = "10", "0"
    if reader.skip("("):
        digits = reader.take()
        scale = reader.take() if reader.skip(",") else "0"
        reader.expect(")")
    if not (digits.isdigit() and scale.isdigit() and int(scale) <= int(digits) <= _DECIMAL_DIGITS_MAX):
        raise SchemaError(f"DECIMAL takes at most {_DECIMAL_DIGITS_MAX} digits, and no more of them after the point")
    return f"decimal({int(digits)},{int(scale)})"


def _struct(reader: DdlReader, end: str) -> dict[str, Any]:
    if end and reader.skip(end):
        return {"type": "struct", "fields": []}
    return {"type": "struct", "fields": list(_fields(reader, end))}


def _fields(reader: DdlReader, end: str) -> Iterator[dict[str, Any]]:
    while True:
        name = reader.take()
        if not (name.startswith("`") or name.isidentifier()):
            raise SchemaError(f"expected the name of a column, found {name or 'the end'!r}")
        reader.skip(":")
        kind = _type(reader)
        is_required = reader.skip("NOT")
        if is_required:
            reader.expect("NULL")
        comment = {"comment": _unquoted(reader.take())} if reader.skip("COMMENT") else {}
        plain = name[1:-1].replace("``", "`") if name.startswith("`") else name
        yield {"name": plain, "type": kind, "nullable": not is_required, "metadata": comment}
        if reader.token == end:
            reader.skip(end)
            return
        reader.expect(",")


def _unquoted(text: str) -> str:
    return text[1:-1].replace("\\'", "'")
