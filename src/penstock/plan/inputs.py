"""What a query reads: its topics and its tables, told apart by name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from penstock.app import App, Query
from penstock.plan.sql import stream_names, table_names


def with_inputs(query: Query, app: App) -> Query:
    """The query with the topics alone in `reads`, and all that it reads in `inputs`."""
    return _with_inputs(query, {table.name for table in app.tables})


def queries_of(app: App) -> list[Query]:
    """Every query of an app with its inputs told apart."""
    tables = {table.name for table in app.tables}
    return [_with_inputs(query, tables) for query in app.queries]


def tables_of(query: Query) -> tuple[str, ...]:
    """The tables among the inputs of a query."""
    return tuple(name for name in query.inputs if name not in query.reads)


def _with_inputs(query: Query, tables: Collection[str]) -> Query:
    if query.sql is not None:
        topics, named = dict.fromkeys(stream_names(query.sql)), dict.fromkeys(table_names(query.sql))
        return replace(query, reads=tuple(topics), inputs=(*topics, *(name for name in named if name not in topics)))
    inputs = query.inputs or query.reads
    return replace(query, reads=tuple(name for name in inputs if name not in tables), inputs=inputs)
