"""A verdict for people (a few lines) and for programs (plain JSON values)."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.assure.verdict import Result, Verdict

# Enough to see what kind of trouble it is; the JSON form holds the rest.
SENTENCES_SHOWN = 3


def report_lines(verdict: Verdict) -> list[str]:
    """The verdict as lines of text, the result first."""
    tally = verdict.tally
    lines = [
        f"verdict {verdict.result}: {_why(verdict)}",
        f"  {tally.writes} writes ({tally.acked} acked, {tally.failed} failed, {tally.unknown} unknown, "
        f"{tally.unknown_seen} of these read), {tally.offsets_read} offsets read, "
        f"{tally.repeated} allowed repeats, {tally.partitions} partitions, {tally.events} events",
    ]
    if tally.transactions or tally.positions:
        unknown = tally.transactions - tally.committed - tally.aborted
        lines.append(
            f"  {tally.transactions} transactions ({tally.committed} committed, {tally.aborted} not, "
            f"{unknown} unknown), {tally.positions} commits of positions"
        )
    for violation, count in verdict.violations.items():
        sentences = [f.sentence for f in verdict.findings if f.violation is violation]
        lines += _paragraph(violation, count, sentences)
    for doubt, count in verdict.doubts.items():
        sentences = [r.sentence for r in verdict.reasons if r.doubt is doubt]
        lines += _paragraph(doubt, count, sentences)
    return lines


def report_data(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain dicts, lists, strings and numbers."""
    data: dict[str, Any] = msgspec.to_builtins(verdict)
    return data


def _why(verdict: Verdict) -> str:
    if verdict.result is Result.INVALID:
        return "broken " + ", ".join(f"{name} x{count}" for name, count in verdict.violations.items())
    if verdict.result is Result.UNKNOWN:
        return "not proved, " + ", ".join(verdict.doubts)
    return "every promise that was checked was kept"


def _paragraph(name: str, count: int, sentences: list[str]) -> list[str]:
    shown = [f"  {name}: {sentence}" for sentence in sentences[:SENTENCES_SHOWN]]
    if count > SENTENCES_SHOWN:
        shown.append(f"  {name}: and {count - SENTENCES_SHOWN} more")
    return shown
