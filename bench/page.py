"""Keeps the last measurement of every row, and writes the tables of docs/benchmarks.md, each between two markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.outcome import number, spread
from bench.row import PATH, QUEUE
from bench.rows import ROWS

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
_MARKERS = {QUEUE: (BEGIN, END), PATH: ("<!-- bench path: begin -->", "<!-- bench path: end -->")}


def kept_with(kept: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is kept of all runs, with those of `reports`: each row as it was measured last, and at which commit."""
    rows = dict(kept["rows"])
    statement = dict(kept["statement"])
    for report in reports:
        when = {"date": report["date"], "commit": report["commit"]}
        rows |= {row["name"]: row | when for row in report["rows"]}
        measured = {row["section"] for row in report["rows"]}
        statement |= {section: facts for section, facts in report["statement"].items() if section in measured}
    order = [row.name for row in ROWS]
    return {"rows": {name: rows[name] for name in order if name in rows}, "statement": statement}


def write_page(page: Path, kept: Mapping[str, Any]) -> None:
    """Replace what stands between the markers of each section measured; ValueError if they are not there."""
    text = page.read_text("utf-8")
    for section, (begin, end) in _MARKERS.items():
        if section not in kept["statement"]:
            continue
        head, found_begin, rest = text.partition(begin)
        _, found_end, tail = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"{page.name} has no place for the table: {begin} and {end} are missing")
        text = f"{head}{begin}\n{render(kept, section)}\n{end}{tail}"
    page.write_text(text, "utf-8")


def render(kept: Mapping[str, Any], section: str) -> str:
    """The table of a section and how it was measured, as Markdown."""
    peer = "Apache Kafka" if section == QUEUE else "peer"
    lines = [
        f"| row | what | unit | ours | {peer} | ratio | at least / at most | | measured |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_table_row(row) for row in kept["rows"].values() if row["section"] == section),
        "",
        *(f"- {fact}" for fact in kept["statement"][section]),
    ]
    return "\n".join(lines)


def _table_row(row: Mapping[str, Any]) -> str:
    ours = _measured(row["ours"], row["ours_rounds"])
    peer = _measured(row["kafka"], row["kafka_rounds"]) if row["kafka_rounds"] else "–"
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
    verdict = {True: "reached", False: "**missed**", None: "stated"}[row["reached"]]
    title = f"{row['title']}; beside {row['peer']}" if row["peer"] not in ("", "Apache Kafka") else row["title"]
    cells = (f"`{row['name']}`", title, row["unit"], ours, peer, ratio, _goal(row), verdict, _when(row))
    return f"| {' | '.join(cells)} |"


def _when(row: Mapping[str, Any]) -> str:
    rounds = len(row["ours_rounds"])
    return f"{row['date']} `{row['commit']}`" + (f", {rounds} rounds" if rounds > 1 else "")


def _measured(value: float, rounds: Sequence[float]) -> str:
    return f"{_grouped(value)} ({spread(rounds)})" if len(rounds) > 1 else _grouped(value)


def _goal(row: Mapping[str, Any]) -> str:
    if row["goal"] is None:
        return ""
    sign = "≥" if row["more_is_better"] else "≤"
    goal = f"{_grouped(row['goal'])} {row['unit']}" if row["judged_alone"] else row["goal"]
    stretch = f" (stretch {row['stretch']})" if row["stretch"] else ""
    return f"{sign} {goal}{stretch}"


def _grouped(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else number(value)
