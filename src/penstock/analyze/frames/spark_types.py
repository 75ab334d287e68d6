"""A topic's schema in the words that Spark's parser takes at once."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as T

from penstock.events.schema import Column, Type

STRING, BINARY, LONG = T.StringType(), T.BinaryType(), T.LongType()


def struct_words(columns: Iterable[Column]) -> str:
    """STRUCT<...> of these columns. All of them may be null: what an event lacks is told by us, not by Spark.

    PySpark would give a type as JSON, which Spark parses as SQL first, and again by other rules, in vain.
    """
    return f"STRUCT<{', '.join(f'{_quoted(column.name)}: {_words(column.type)}' for column in columns)}>"


def column_words(columns: Iterable[Column]) -> str:
    """`name` TYPE, … of these columns: the only form that Spark takes for CSV."""
    return ", ".join(f"{_quoted(column.name)} {_words(column.type)}" for column in columns)


def _words(kind: Type) -> str:
    if kind.name == "struct":
        return struct_words(kind.columns)
    if kind.name == "decimal":
        return f"DECIMAL({kind.digits[0]}, {kind.digits[1]})"
    inside = f"<{', '.join(map(_words, kind.items))}>" if kind.items else ""
    return kind.name.upper() + inside


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
