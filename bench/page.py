"""Writes the last tables into docs/benchmarks.md, each between two markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.outcome import number, spread
from bench.row import PATH, QUEUE

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
_MARKERS = {QUEUE: (BEGIN, END), PATH: ("<!-- bench path: begin -->", "<!-- bench path: end -->")}


def write_page(page: Path, report: Mapping[str, Any]) -> None:
    """Replace what stands between the markers of each section measured; ValueError if they are not there."""
    text = page.read_text("utf-8")
    for section, (begin, end) in _MARKERS.items():
        if not any(row["section"] == section for row in report["rows"]):
            continue
        head, found_begin, rest = text.partition(begin)
        _, found_end, tail = rest.partition(end)
        if not found_begin or not found_end:
            raise ValueError(f"{page.name} has no place for the table: {begin} and {end} are missing")
        text = f"{head}{begin}\n{render(report, section)}\n{end}{tail}"
    page.write_text(text, "utf-8")


def merged(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One report of several that measured different rows; a row measured again counts as it was the last time."""
    rows: dict[str, Any] = {}
    for report in reports:
        rows |= {row["name"]: row for row in report["rows"]}
    whole = {**reports[-1], "rows": list(rows.values())}
    for name in ("date", "commit", "command"):
        whole[name] = ", ".join(dict.fromkeys(report[name] for report in reports))
    statement: dict[str, list[str]] = {}
    for report in reports:
        for section in dict.fromkeys(row["section"] for row in report["rows"]):
            known = statement.setdefault(section, [])
            known += [fact for fact in report["statement"][section] if fact not in known]
    return whole | {"statement": statement}


def render(report: Mapping[str, Any], section: str) -> str:
    """The table of a section and how it was measured, as Markdown."""
    peer = "Apache Kafka" if section == QUEUE else "peer"
    lines = [
        f"Measured on {report['date']} at commit `{report['commit']}` with `{report['command']}`.",
        "",
        f"| row | what | unit | ours | {peer} | ratio | at least / at most | |",
        "|---|---|---|---|---|---|---|---|",
        *(_table_row(row) for row in report["rows"] if row["section"] == section),
        "",
        *(f"- {fact}" for fact in report["statement"][section]),
    ]
    return "\n".join(lines)


def _table_row(row: Mapping[str, Any]) -> str:
    ours = _measured(row["ours"], row["ours_rounds"])
    peer = _measured(row["kafka"], row["kafka_rounds"]) if row["kafka_rounds"] else "–"
    ratio = "–" if row["ratio"] is None else f"{row['ratio']:.2f}"
    verdict = {True: "reached", False: "**missed**", None: "stated"}[row["reached"]]
    title = f"{row['title']}; beside {row['peer']}" if row["section"] == PATH and row["peer"] else row["title"]
    return f"| `{row['name']}` | {title} | {row['unit']} | {ours} | {peer} | {ratio} | {_goal(row)} | {verdict} |"


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
