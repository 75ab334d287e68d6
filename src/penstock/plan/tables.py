"""The tables of an app: what was declared, as it will be read, and every fault of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from penstock.app import Table
from penstock.events.schema import Schema, SchemaError, parse_schema
from penstock.guarantee import duration_ms

EVERY_MS_MIN = 1_000  # each changed table stops and starts its queries
_SECRET = ("password", "secret", "token", "credential", "key", "url", "user")


class TableFormat(StrEnum):
    """From what Spark reads a table."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    JDBC = "jdbc"


@dataclass(frozen=True)
class TablePlan:
    """A table as it will be read."""

    name: str
    path: str | None
    format: TableFormat
    schema: Schema | None
    every: str | None
    options: Mapping[str, str] = field(repr=False)

    @property
    def every_ms(self) -> int | None:
        """After how long it is read again; None: at each start alone."""
        return duration_ms(self.every) if self.every else None

    @property
    def text(self) -> str:
        """'csv /srv/cards.csv, read again every 10 minutes'."""
        place = f" {self.path}" if self.path else ""
        return f"{self.format}{place}, read {f'again every {self.every}' if self.every else 'at each start'}"

    def without_secrets(self, text: str) -> str:
        """A text about the table without what its options keep secret."""
        for name, value in self.options.items():
            if value and any(word in name.lower() for word in _SECRET):
                text = text.replace(value, "***")
        return text


def plan_table(table: Table) -> TablePlan:
    """The plan of a table without faults."""
    return TablePlan(
        name=table.name,
        path=table.path,
        format=TableFormat(table.format),
        schema=parse_schema(table.schema) if table.schema else None,
        every=table.every,
        options={
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in table.options.items()
        },
    )


def table_faults(table: Table) -> Iterator[str]:
    """Why this table cannot be read as it is declared. Values of options are not told: one may be a password."""
    formats = tuple(TableFormat)
    if table.format not in formats:
        yield f"format is one of {', '.join(formats)}, not {table.format!r}"
    elif table.format == TableFormat.JDBC:
        given = {name.lower() for name in table.options}
        if table.path is not None:
            yield "a table of a database has no path: leave it out"
        if "url" not in given or not given & {"dbtable", "query"}:
            yield "format='jdbc' needs options={'url': …, 'dbtable': …}"
    elif not table.path:
        yield f"format={table.format!r} needs path=: a file, a folder or a pattern such as 'cards/*.csv'"
    if table.schema is None and table.format in (TableFormat.CSV, TableFormat.JSON):
        yield f"format={table.format!r} needs schema=: another file must not change the types of the query"
    if table.schema is not None:
        try:
            parse_schema(table.schema)
        except SchemaError as error:
            yield f"the schema does not parse: {error}"
    if table.every is not None and (duration_ms(table.every) or 0) < EVERY_MS_MIN:
        yield f"every is a duration of a second or more, such as '10 minutes', not {table.every!r}"
