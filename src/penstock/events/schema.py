"""A topic's schema: Spark's DDL read without Spark, and the same verdict on an event at every door."""

from __future__ import annotations

import datetime
import decimal
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import msgspec

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|([A-Za-z_][A-Za-z0-9_]*)|(\d+)|('(?:[^'\\]|\\.)*')|([<>(),:]))")
_PLAIN = {
    "STRING": "string", "BOOLEAN": "boolean", "BINARY": "binary", "DATE": "date",
    "TINYINT": "byte", "BYTE": "byte", "SMALLINT": "short", "SHORT": "short", "INT": "int", "INTEGER": "int",
    "BIGINT": "long", "LONG": "long", "FLOAT": "float", "REAL": "float", "DOUBLE": "double",
    "TIMESTAMP": "timestamp", "TIMESTAMP_LTZ": "timestamp", "TIMESTAMP_NTZ": "timestamp_ntz",
}  # fmt: skip
TIMES = ("timestamp", "timestamp_ntz")
_JSON_WORDS = {"str": "string", "float": "number", "int": "whole number", "bool": "boolean"}
_WHOLE_BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
_DECIMAL_DIGITS_MAX = 38


class SchemaError(ValueError):
    """The DDL cannot be read; the message says where and what was expected."""


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type: a plain one by name, or an array, map or struct of others."""

    name: str
    items: tuple[Type, ...] = ()
    columns: tuple[Column, ...] = ()
    digits: tuple[int, int] = (10, 0)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a schema."""

    name: str
    type: Type
    required: bool = False


@dataclass(frozen=True)
class Schema:
    """The columns of a topic, and the text they were read from."""

    ddl: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def required(self) -> list[str]:
        """Columns that no event may lack."""
        return [column.name for column in self.columns if column.required]

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(_struct("Event", self.columns))

    def decode(self, value: bytes | memoryview) -> Any:
        """The event as a struct, for `text`; ValueError says why this JSON text is none, naming the field."""
        try:
            return self._decoder.decode(value)
        except msgspec.ValidationError as wrong:
            raise ValueError(_in_words(str(wrong))) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise ValueError(f"not JSON: {wrong}") from None
        except RecursionError:
            raise ValueError("not JSON that can be read: nested too deeply") from None

    def fault(self, value: bytes | memoryview) -> str | None:
        """Why this JSON text is no event of the schema, naming the field; None if it is one."""
        try:
            self.decode(value)
        except ValueError as wrong:
            return str(wrong)
        return None

    def part(self, name: str) -> Callable[[Any], Any]:
        """What gives a column of a decoded event as it was decoded: UNSET where it is absent."""
        return operator.attrgetter(_attribute(self.names.index(name)))

    def text(self, name: str) -> Callable[[Any], str | None]:
        """What gives the text of a column of a decoded event; None where it is absent or null."""
        attribute = self.part(name)

        def pick(event: Any) -> str | None:
            part = attribute(event)
            if type(part) is str:
                return part
            return None if part is None or part is msgspec.UNSET else json_text(part)

        return pick


def parse_schema(ddl: str) -> Schema:
    """The schema that Spark's DDL text describes; SchemaError if it is none."""
    reader = DdlReader(ddl)
    columns = tuple(_columns(reader, end="", colon=False))
    _refuse_twins(columns)
    return Schema(ddl, columns)


class DdlReader:
    """Tokens of a DDL text, one at a time."""

    def __init__(self, text: str) -> None:
        self._tokens = list(self._split(text))
        self._next = 0

    @staticmethod
    def _split(text: str) -> Iterator[str]:
        position, stripped = 0, text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise SchemaError(f"cannot read {stripped[position : position + 20].strip()!r}")
            yield match[0].strip()
            position = match.end()

    @property
    def token(self) -> str:
        """The token at hand; empty at the end."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self) -> str:
        token = self.token
        self._next += 1
        return token

    def skip(self, wanted: str) -> bool:
        """Take the token if it is `wanted`."""
        if self.token.upper() != wanted:
            return False
        self._next += 1
        return True

    def expect(self, wanted: str) -> None:
        if not self.skip(wanted):
            raise SchemaError(f"expected {wanted!r}, found {self.token or 'the end'!r}")


def _columns(reader: DdlReader, end: str, colon: bool) -> Iterator[Column]:
    while True:
        token = reader.take()
        if not re.match(r"[A-Za-z_`]", token):
            raise SchemaError(f"expected the name of a column, found {token or 'the end'!r}")
        name = token[1:-1].replace("``", "`") if token.startswith("`") else token
        if colon:
            reader.skip(":")
        kind = _type(reader, name)
        required = False
        if reader.skip("NOT"):
            reader.expect("NULL")
            required = True
        if reader.skip("COMMENT"):
            reader.take()
        yield Column(name, kind, required)
        if reader.token == end:
            reader.skip(end)
            return
        reader.expect(",")


def _type(reader: DdlReader, column: str) -> Type:
    word = reader.take().upper()
    if word in _PLAIN:
        return Type(_PLAIN[word])
    if word in ("VARCHAR", "CHAR"):
        reader.expect("(")
        reader.take()
        reader.expect(")")
        return Type("string")
    if word in ("DECIMAL", "DEC", "NUMERIC"):
        return Type("decimal", digits=_digits(reader, column))
    if word == "ARRAY":
        reader.expect("<")
        item = _type(reader, column)
        reader.expect(">")
        return Type("array", items=(item,))
    if word == "MAP":
        reader.expect("<")
        key = _type(reader, column)
        reader.expect(",")
        value = _type(reader, column)
        reader.expect(">")
        if key.name != "string":
            raise SchemaError(f"the keys of map {column} must be STRING: JSON has no others")
        return Type("map", items=(key, value))
    if word == "STRUCT":
        reader.expect("<")
        inner = tuple(_columns(reader, end=">", colon=True))
        _refuse_twins(inner)
        return Type("struct", columns=inner)
    raise SchemaError(f"column {column} has no type that JSON can carry: {word or 'the text ends'}")


def _digits(reader: DdlReader, column: str) -> tuple[int, int]:
    if not reader.skip("("):
        return (10, 0)
    precision = reader.take()
    scale = reader.take() if reader.skip(",") else "0"
    reader.expect(")")
    if not (precision.isdigit() and scale.isdigit() and 1 <= int(precision) <= _DECIMAL_DIGITS_MAX):
        raise SchemaError(f"column {column}: DECIMAL takes 1 to {_DECIMAL_DIGITS_MAX} digits")
    return int(precision), int(scale)


def _refuse_twins(columns: tuple[Column, ...]) -> None:
    seen: dict[str, str] = {}
    for column in columns:
        lower = column.name.lower()  # Spark does not tell case apart either
        if lower in seen:
            raise SchemaError(f"column {column.name} is there twice")
        seen[lower] = column.name


def _attribute(position: int) -> str:
    return f"column_{position}"


def _struct(name: str, columns: tuple[Column, ...]) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for position, column in enumerate(columns):
        kind = _python_type(column.type)
        attribute = _attribute(position)  # a column's own name may be no Python name
        if column.required:
            fields.append((attribute, kind, msgspec.field(name=column.name)))
        else:
            fields.append(
                (attribute, kind | None | msgspec.UnsetType, msgspec.field(default=msgspec.UNSET, name=column.name))
            )
    return msgspec.defstruct(name, fields, kw_only=True)


def _python_type(kind: Type) -> Any:
    if kind.name in _WHOLE_BITS:
        limit = 2 ** (_WHOLE_BITS[kind.name] - 1)
        if kind.name == "long":
            return int  # msgspec's bounds end at 64 bits anyway
        return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    if kind.name == "array":
        return list[_python_type(kind.items[0]) | None]  # type: ignore[misc]  # a type made while running
    if kind.name == "map":
        return dict[str, _python_type(kind.items[1]) | None]  # type: ignore[misc]
    if kind.name == "struct":
        return _struct("Struct", kind.columns)
    plain: dict[str, Any] = {
        "string": str, "binary": str, "boolean": bool, "float": float, "double": float,
        "decimal": decimal.Decimal | float, "date": datetime.date,
        "timestamp": datetime.datetime, "timestamp_ntz": datetime.datetime,
    }  # fmt: skip
    return plain[kind.name]


def json_text(part: Any) -> str:
    """A value of a JSON text as a key or an id shows it: a string without its quotes, the rest as JSON."""
    if isinstance(part, str):
        return part
    return msgspec.json.encode(part).decode().strip('"')


def _in_words(wrong: str) -> str:
    """msgspec's "Expected `float`, got `str` - at `$.amount`" with the field first."""
    message, _, place = wrong.partition(" - at `")
    field = place.rstrip("`").removeprefix("$").removeprefix(".")
    said = re.sub(r"\b(str|float|int|bool)\b", lambda word: _JSON_WORDS[word[0]], message.replace("`", ""))
    missing = re.fullmatch(r"Object missing required field (\S+)", said)
    if missing:
        inside = f"{field}." if field else ""
        return f"field {inside}{missing[1]} is missing"
    said = said[:1].lower() + said[1:]
    return f"field {field}: {said}" if field else said
