"""What an app declares, as values that a run spec carries: a process that needs only the plan imports no app."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from penstock.app import App, Delivery, Ingest, Query, Table, Topic


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """An app without the functions of its queries."""

    name: str
    topics: list[Topic]
    queries: list[Query]
    ingests: list[Ingest]
    deliveries: list[Delivery]
    tables: list[Table] = []


def declaration_of(app: App) -> Declaration | None:
    """What the app declares; None if a value of it, such as an example, is none of JSON's."""
    declared = Declaration(
        name=app.name,
        topics=app.topics,
        queries=[replace(query, function=None) for query in app.queries],
        ingests=app.ingests,
        deliveries=app.deliveries,
        tables=app.tables,
    )
    try:
        return msgspec.json.decode(msgspec.json.encode(declared), type=Declaration)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return None


def app_of(declared: Declaration) -> App:
    """An app to plan. What runs its queries imports the app itself."""
    app = App(declared.name)
    app.topics += declared.topics
    app.tables += declared.tables
    app.queries += [
        query if query.sql is not None else replace(query, function=_elsewhere) for query in declared.queries
    ]
    app.ingests += declared.ingests
    app.deliveries += declared.deliveries
    return app


def _elsewhere(*frames: Any) -> Any:
    raise NotImplementedError("the function of this query is in the app")
