"""Writes the last table into docs/benchmarks.md, between two markers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.outcome import number, spread

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def write_page(page: Path, report: Mapping[str, Any]) -> None:
    """Replace what stands between the markers; ValueError if they are not there."""
    text = page.read_text("utf-8")
    head, found_begin, rest = text.partition(BEGIN)
    _, found_end, tail = rest.partition(END)
    if not found_begin or not found_end:
        raise ValueError(f"{page.name} has no place for the table: {BEGIN} and {END} are missing")
    page.write_text(f"{head}{BEGIN}\n{render(report)}\n{END}{tail}", "utf-8")


def render(report: Mapping[str, Any]) -> str:
    """The table and how it was measured, as Markdown."""
    lines = [
        f"Measured on {report['date']} at commit `{report['commit']}` with `{report['command']}`.",
        "",
        "| row | what | unit | ours | Apache Kafka | ratio | at least / at most | |",
        "|---|---|---|---|---|---|---|---|",
        *(_table_row(row) for row in report["rows"]),
        "",
        *(f"- {fact}" for fact in report["statement"]),
    ]
    return "\n".join(lines)


def _table_row(row: Mapping[str, Any]) -> str:
    ours = f"{_grouped(row['ours'])} ({spread(row['ours_rounds'])})"
    kafka = f"{_grouped(row['kafka'])} ({spread(row['kafka_rounds'])})" if row["kafka_rounds"] else "–"
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
    verdict = {True: "reached", False: "**missed**", None: "stated"}[row["reached"]]
    return (
        f"| `{row['name']}` | {row['title']} | {row['unit']} | {ours} | {kafka} | {ratio} | {_goal(row)} | {verdict} |"
    )


def _goal(row: Mapping[str, Any]) -> str:
    if row["goal"] is None:
        return ""
    sign = "≥" if row["more_is_better"] else "≤"
    unit = "" if row["has_peer"] else f" {row['unit']}"
    stretch = f" (stretch {row['stretch']})" if row["stretch"] else ""
    return f"{sign} {row['goal']}{unit}{stretch}"


def _grouped(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else number(value)
