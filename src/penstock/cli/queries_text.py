"""What queries report about themselves, for people. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

SILENT_MS = 10_000
HEAD = (
    "QUERY",
    "STATE",
    "MODE",
    "IN/S",
    "OUT/S",
    "LAG",
    "WATERMARK",
    "LATE",
    "STATE ROWS",
    "STATE SIZE",
    "CHECKPOINT",
    "LATENCY MS",
)

_NOTHING = "-"
_Report = Mapping[str, Any]
_Reports = Mapping[tuple[str, str], _Report]  # by app and query


def head(reports: _Reports) -> tuple[str, ...]:
    """The columns; the app is one where the queue has the queries of several."""
    return ("APP", *HEAD) if _has_several_apps(reports) else HEAD


def rows(reports: _Reports, now_ms: int) -> list[list[str]]:
    """One row a query, by app and name."""
    has_several = _has_several_apps(reports)
    return [
        [*([app] if has_several else []), *_row(query, report, now_ms)]
        for (app, query), report in sorted(reports.items())
    ]


def _has_several_apps(reports: _Reports) -> bool:
    return len({app for app, _ in reports}) > 1


def reasons(reports: _Reports) -> list[str]:
    """Why each query runs in the mode it does, and why it does not run, where it says so."""
    found = []
    for (app, query), report in sorted(reports.items()):
        name = f"{app}/{query}" if _has_several_apps(reports) else query
        if report.get("mode") and report.get("mode_reason"):
            found.append(f"{name}: {report['mode']}: {report['mode_reason']}")
        if report.get("reason"):
            found.append(f"{name}: {report.get('state')}: {report['reason']}")
    return found


def is_silent(report: _Report, now_ms: int) -> bool:
    """A query reports every second: one that does not may be gone. One that said it stopped need not report."""
    return report.get("state") != "stopped" and now_ms - int(report.get("at_ms") or 0) > SILENT_MS


def _row(name: str, report: _Report, now_ms: int) -> list[str]:
    state = str(report.get("state") or _NOTHING)
    if is_silent(report, now_ms):
        state = f"silent since {clock(report.get('at_ms'))} (was {state})"
    latency = report.get("latency_ms") or {}
    checkpoint = report.get("checkpoint_ms")
    return [
        name,
        state,
        str(report.get("mode") or _NOTHING),
        number(report.get("rows_in_per_s")),
        number(report.get("rows_out_per_s")),
        number(report.get("lag")),
        str(report.get("watermark") or _NOTHING),
        number(report.get("late")),
        number(report.get("state_rows")),
        size(report.get("state_bytes")),
        _NOTHING if checkpoint is None else clock(checkpoint),
        " / ".join(number(latency.get(part)) for part in ("min", "avg", "max")) if latency else _NOTHING,
    ]


def number(value: float | None) -> str:
    """Whole numbers with thousands apart; small ones with one digit."""
    if value is None:
        return _NOTHING
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.1f}"


def size(value: float | None) -> str:
    """Bytes as KiB, MiB, GiB."""
    if value is None:
        return _NOTHING
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def clock(timestamp_ms: float | None) -> str:
    """HH:MM:SS in UTC."""
    try:
        return datetime.fromtimestamp(float(timestamp_ms or 0) / 1000, UTC).strftime("%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return _NOTHING
