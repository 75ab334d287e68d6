"""The SQL of queries: which topics it reads, and the views that stand for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from penstock.app import Query

STREAM = re.compile(r"\bSTREAM\s*\(\s*(`[^`]+`|[A-Za-z0-9._-]+)\s*\)", re.IGNORECASE)
SQL_ASIDE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def with_reads(query: Query) -> Query:
    """A SQL query with the topics that its text names."""
    if query.sql is None:
        return query
    return replace(query, reads=tuple(dict.fromkeys(stream_names(query.sql))))


def stream_names(sql: str) -> list[str]:
    """The topics that a SQL text reads as STREAM(topic), in their order."""
    return [name.strip("`") for name in STREAM.findall(SQL_ASIDE.sub(" ", sql))]


def sql_with_views(sql: str, view: Callable[[str], str]) -> str:
    """The text with each STREAM(topic) replaced by `view(topic)`; comments and strings stay."""
    parts, position = [], 0
    for aside in SQL_ASIDE.finditer(sql):
        parts += [STREAM.sub(lambda m: view(m[1].strip("`")), sql[position : aside.start()]), aside[0]]
        position = aside.end()
    return "".join([*parts, STREAM.sub(lambda m: view(m[1].strip("`")), sql[position:])])
