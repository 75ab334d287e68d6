"""The formats of a topic's records, and what a schema must be for each. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from penstock.events.schema import Schema


class RecordFormat(StrEnum):
    """How the value of a record holds an event, as an app says it."""

    JSON = "json"
    TEXT = "text"  # UTF-8: one STRING column
    BYTES = "bytes"  # one BINARY column
    CSV = "csv"  # a line without a header: the columns in the order of the schema


_ONLY_COLUMN = {RecordFormat.TEXT: "string", RecordFormat.BYTES: "binary"}
_NOT_IN_CSV = ("array", "map", "struct", "binary")


def format_faults(form: RecordFormat, schema: Schema) -> Iterator[str]:
    """Why a schema does not fit a format."""
    only = _ONLY_COLUMN.get(form)
    if only is not None and [column.type.name for column in schema.columns] != [only]:
        yield f"format='{form}' needs a schema of one {only.upper()} column, such as 'line {only.upper()}'"
    if form is RecordFormat.CSV:
        for column in schema.columns:
            if column.type.name in _NOT_IN_CSV:
                yield f"format='csv' cannot carry column {column.name}, a {column.type.name.upper()}"
