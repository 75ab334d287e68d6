"""The SQL of queries: which topics and tables it reads, and the views that stand for them."""

from __future__ import annotations

import re
from collections.abc import Callable

_NAME = r"\s*\(\s*(`[^`]+`|[A-Za-z0-9._-]+)\s*\)"
STREAM = re.compile(r"\bSTREAM" + _NAME, re.IGNORECASE)
# Elsewhere TABLE(name) is Spark's own: an argument of a function.
TABLE = re.compile(r"\b(?:FROM|JOIN)\s+(TABLE" + _NAME + ")", re.IGNORECASE)
SQL_ASIDE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def stream_names(sql: str) -> list[str]:
    """The topics that a SQL text reads as STREAM(topic), in their order."""
    return [found[1].strip("`") for found in STREAM.finditer(_bare(sql))]


def table_names(sql: str) -> list[str]:
    """The tables that a SQL text reads as TABLE(name) after FROM or JOIN, in their order."""
    return [found[2].strip("`") for found in TABLE.finditer(_bare(sql))]


def sql_with_views(sql: str, view: Callable[[str], str]) -> str:
    """The text with each STREAM(topic) and TABLE(name) replaced by `view(name)`; comments and strings stay."""
    bare = _bare(sql)
    places = [(found.span(), found[1]) for found in STREAM.finditer(bare)]
    places += [(found.span(1), found[2]) for found in TABLE.finditer(bare)]
    parts, position = [], 0
    for (begin, end), name in sorted(places):
        parts += [sql[position:begin], view(name.strip("`"))]
        position = end
    return "".join([*parts, sql[position:]])


def _bare(sql: str) -> str:
    """The text of the same length with blanks for comments and strings."""
    return SQL_ASIDE.sub(lambda aside: " " * len(aside[0]), sql)
