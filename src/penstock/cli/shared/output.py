"""How data is printed: aligned for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from penstock.errors import PenstockError

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def print_json(data: Any, *, compact: bool = False) -> None:
    """One document; `compact` keeps it on one line."""
    click.echo(json.dumps(data, ensure_ascii=False, indent=None if compact else 2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as they need; numbers stand to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    right = [bool(rows) and all(isinstance(row[at], int) for row in rows) for at in range(len(head))]
    for line in [list(head), *texts]:
        cells = [
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(line, widths, right, strict=True)
        ]
        click.echo("  ".join(cells).rstrip())


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]], as_json: bool, nothing: str) -> None:
    """A table with these columns, or a document; `nothing` is said to people if there are no rows."""
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        shown = [["-" if cell is None else cell for cell in row] for row in rows]
        print_table([column.upper() for column in columns], shown)
    else:
        click.echo(nothing, err=True)


def print_facts(facts: Sequence[tuple[str, object]], indent: str = "") -> None:
    """Names and values, one a line, the values below each other."""
    width = max((len(name) for name, _ in facts), default=0)
    for name, value in facts:
        click.echo(f"{indent}{name.ljust(width)}  {value}".rstrip())


def print_each(described: Sequence[dict[str, Any]], as_json: bool, show: Callable[[dict[str, Any]], None]) -> None:
    """All of them as one document, or shown one after the other."""
    if as_json:
        print_json(described)
        return
    for number, one in enumerate(described):
        if number:
            click.echo()
        show(one)


def ask(question: str) -> None:
    """Go on only if the answer is yes; where nobody can answer, say how to go on."""
    try:
        is_sure = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise PenstockError("nothing is done, for nobody answered: --yes goes on without asking") from None
    if not is_sure:
        raise click.Abort


def count(number: int, noun: str) -> str:
    """'1 record', '2 records'."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
