"""What `penstock queries` and `penstock tap` print."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from penstock.cli.queries import HEAD, head, number, reasons, rows, size
from penstock.cli.shared.record_text import Lines, cells, clipped, local_time
from penstock.client.record import Record
from penstock.events.query_status import QueryStatus

NOW_MS = 1_794_800_000_000


def report(**more: Any) -> QueryStatus:
    said = {"app": "a", "query": "q", "state": "running", "mode": "realtime", "at_ms": NOW_MS - 500, **more}
    return msgspec.convert(said, QueryStatus)


def test_a_report_with_everything_fills_every_column() -> None:
    """Numbers as people read them."""
    full = report(
        rows_in_per_s=1234.0, rows_out_per_s=0.5, lag=3, watermark="2026-11-16T03:00:00Z", late=7,
        state_rows=1_200_000, state_bytes=5 * 2**20, checkpoint_ms=NOW_MS,
        latency_ms={"min": 1.25, "avg": 4, "max": 330.4},
    )  # fmt: skip
    (row,) = rows({("a", "q"): full}, NOW_MS)
    assert dict(zip(HEAD, row, strict=True)) == {
        "QUERY": "q", "STATE": "running", "MODE": "realtime", "IN/S": "1,234", "OUT/S": "0.5", "LAG": "3",
        "WATERMARK": "2026-11-16T03:00:00Z", "LATE": "7", "STATE ROWS": "1,200,000", "STATE SIZE": "5 MiB",
        "CHECKPOINT": "03:33:20Z", "LATENCY MS": "1.2 / 4 / 330",
    }  # fmt: skip


def test_what_is_not_known_is_a_dash() -> None:
    """A report may hold null for any number, or not have it at all."""
    nothing = dict.fromkeys(("rows_in_per_s", "lag", "state_bytes", "checkpoint_ms", "latency_ms", "watermark"))
    (row,) = rows({("a", "q"): report(**nothing)}, NOW_MS)
    assert row == ["q", "running", "realtime", *["-"] * 9]


def test_a_query_that_no_longer_reports_is_called_silent() -> None:
    """It may be gone; one that said that it stopped is not."""
    (row,) = rows({("a", "q"): report(at_ms=NOW_MS - 11_000)}, NOW_MS)
    assert row[1] == "silent since 03:33:09Z (was running)"
    (recent,) = rows({("a", "q"): report(at_ms=NOW_MS - 9_000)}, NOW_MS)
    (stopped,) = rows({("a", "q"): report(at_ms=NOW_MS - 60_000, state="stopped")}, NOW_MS)
    assert (recent[1], stopped[1]) == ("running", "stopped")


def test_the_reasons_are_sentences_below_the_table() -> None:
    """Why this mode, and why it waits."""
    told = reasons(
        {
            ("shop", "b"): report(state="waiting", reason="the queue is away"),
            ("shop", "a"): report(mode="microbatch", mode_reason="stream-stream join: not in Real-Time Mode"),
        }
    )
    assert told == ["a: microbatch: stream-stream join: not in Real-Time Mode", "b: waiting: the queue is away"]


def test_queries_of_several_apps_are_told_apart() -> None:
    """The same name in two apps is two rows."""
    reports = {("desk", "pick"): report(), ("shop", "pick"): report(state="parked", reason="it failed")}
    assert head(reports)[:2] == ("APP", "QUERY")
    assert [row[:3] for row in rows(reports, NOW_MS)] == [["desk", "pick", "running"], ["shop", "pick", "parked"]]
    assert "shop/pick: parked: it failed" in reasons(reports)


def test_numbers_and_sizes() -> None:
    assert [number(value) for value in (0, 12.34, 99.95, 123.4, 1e6)] == ["0", "12.3", "100.0", "123", "1,000,000"]
    assert [size(value) for value in (0, 1023, 1024, 3 * 2**30)] == ["0 B", "1023 B", "1 KiB", "3.0 GiB"]


def record(value: bytes, topic: str = "t", key: bytes | None = b"k") -> Record:
    return Record(topic, 0, 1, NOW_MS, key, value, [])


def test_a_line_is_never_wider_than_the_terminal() -> None:
    """Whatever the letters: wide ones take two cells, escapes of the value cannot command the terminal."""
    lines = Lines(60, coloured=True)
    for value in (b"x" * 200, "漢字".encode() * 50, b"\x1b[31mred\x07" * 20, b"short"):
        plain = click.unstyle(lines.line(record(value)))
        assert cells(plain) <= 60
        assert "\x1b" not in plain


def test_without_a_terminal_lines_are_whole_and_plain() -> None:
    """For a pipe or a file."""
    line = Lines(None, coloured=False).line(record(b"x" * 500))
    assert line.endswith("  t/0  k  " + "x" * 500)
    assert "\x1b" not in line


def test_each_topic_keeps_its_colour() -> None:
    lines = Lines(80, coloured=True)
    first, other, again = (lines.line(record(b"1", topic)) for topic in ("a", "b", "a"))
    assert first == again
    assert click.style("a/0", fg="cyan") in first
    assert click.style("b/0", fg="yellow") in other


def test_clipping_counts_cells() -> None:
    assert clipped("abcdef", 6) == "abcdef"
    assert clipped("abcdefg", 6) == "abcde…"
    assert clipped("漢字漢字", 6) == "漢字…"


def test_a_time_that_makes_no_sense_is_dashes() -> None:
    assert [local_time(stamp) for stamp in (None, -1, 2**62)] == ["--:--:--.---"] * 3
