"""What the bench prints and keeps is what it measured."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # bench is a folder of scripts beside src, not a part of the package

from bench.boundaries import Sample, summary  # noqa: E402
from bench.latency_consumer import percentile  # noqa: E402
from bench.outcome import outcomes  # noqa: E402
from bench.page import BEGIN, END, kept_with, render, write_page  # noqa: E402
from bench.produce import steady_rate  # noqa: E402
from bench.row import PATH, QUEUE, Row  # noqa: E402
from bench.rows import ROWS, chosen  # noqa: E402
from bench.runner import Values, sorted_in_turns  # noqa: E402
from bench.stolen import Ticks, stolen_percent, ticks_now  # noqa: E402
from bench.wrk import checked, find_wrk  # noqa: E402
from penstock.errors import PenstockError  # noqa: E402

SAID = """2000000 records sent, 76557.954371 records/sec (7.30 MB/sec), 3269.80 ms avg latency, 5308.00 ms max latency.
1500000 steady state records sent, 83477.099449 records/sec (7.96 MB/sec), 3064.87 ms avg latency.
"""


def forged(row: Row, ours: list[float], kafka: list[float]) -> Values:
    values: Values = {row.ours: [{row.value: number} for number in ours]}
    if row.kafka is not None and kafka:
        values[row.kafka] = [{row.value: number} for number in kafka]
    return values


NOTHING: dict[str, Any] = {"rows": {}, "statement": {}}


def named(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)


def test_a_row_is_one_line_with_medians_and_their_ratio() -> None:
    """One outlier in three rounds does not move a line."""
    row = named("requests-1-inflight")

    (outcome,) = outcomes([row], forged(row, [60_000, 1, 59_000], [50_000, 40_000, 900_000]))

    assert outcome.line() == "bench requests-1-inflight 59000 50000 1.18"
    assert outcome.is_reached is False


def test_a_row_without_a_peer_has_dashes() -> None:
    """Nothing is invented where Kafka was not measured."""
    core, latency = named("core-request-us"), named("e2e-p50")

    (alone,) = outcomes([core], forged(core, [1.85], []))
    (unpaired,) = outcomes([latency], forged(latency, [0.2], []))

    assert alone.line() == "bench core-request-us 1.85 - -"
    assert alone.is_reached is True
    assert unpaired.line() == "bench e2e-p50 0.2 - -"
    assert unpaired.is_reached is None


def test_less_is_better_where_a_row_says_so() -> None:
    """A ratio above the goal is a miss for times and memory."""
    row = named("memory-after-load")

    assert [row.is_reached(ratio) for ratio in (0.05, 0.1, 0.11)] == [True, True, False]


def test_every_row_has_a_name_of_its_own_without_blanks() -> None:
    """A line is read by its fields."""
    names = [row.name for row in ROWS]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)


def test_trials_alternate_between_the_brokers() -> None:
    """What disturbs the machine for a while hits both sides."""
    rows = chosen("produce-100B")
    trials = list(dict.fromkeys(trial for row in ROWS[:4] for trial in (row.ours, row.kafka) if trial is not None))

    sides = [trial.side for trial in sorted_in_turns(trials)]

    assert [row.name for row in rows] == ["produce-100B"]
    assert sides == ["penstock", "kafka"] * 3


def test_rows_are_chosen_by_name_or_beginning() -> None:
    """A name that is a row means that row alone."""
    assert [row.name for row in chosen("e2e,core-request-us")] == ["e2e-p50", "e2e-p99", "e2e-p99.9", "core-request-us"]
    with pytest.raises(SystemExit, match="no row is called fish"):
        chosen("fish")


def test_the_rate_is_the_one_after_the_clients_warm_up() -> None:
    """The whole run of a Java client includes its compilation."""
    assert steady_rate(SAID) == pytest.approx(83477.1, abs=0.1)


def test_a_produce_run_with_failed_records_is_no_result() -> None:
    """A broker is not fast because it refused."""
    with pytest.raises(PenstockError, match="TimeoutException"):
        steady_rate(SAID, "org.apache.kafka.common.errors.TimeoutException: expired")


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100)])
def test_percentiles_are_values_that_were_measured(share: float, expected: int) -> None:
    """No interpolation: at least that share took no longer."""
    assert percentile(range(1, 101), share) == expected


def test_the_page_keeps_what_people_wrote_around_the_table(tmp_path: Path) -> None:
    """Only what stands between the markers is replaced."""
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", "utf-8")
    row = named("produce-100B")
    (outcome,) = outcomes([row], forged(row, [500_000], [700_000]))
    report: dict[str, Any] = {
        "command": "make bench",
        "date": "2026-11-16",
        "commit": "abc",
        "statement": {QUEUE: ["fact"]},
        "rows": [outcome.to_json()],
    }

    write_page(page, kept_with(NOTHING, [report]))

    text = page.read_text("utf-8")
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert "| 0.71 | ≥ 0.65 (stretch 0.9) | reached | 2026-11-16 `abc` |" in text


def test_a_report_of_the_path_leaves_the_table_of_the_queue_alone(tmp_path: Path) -> None:
    """Each section has a place of its own."""
    page = tmp_path / "benchmarks.md"
    page.write_text(f"{BEGIN}\nqueue\n{END}\n<!-- bench path: begin -->\nold\n<!-- bench path: end -->\n", "utf-8")
    row = named("http-ndjson")
    (outcome,) = outcomes([row], forged(row, [70_000], [140_000]))
    report = {"command": "c", "date": "d", "commit": "e", "statement": {PATH: ["fact"]}, "rows": [outcome.to_json()]}

    write_page(page, kept_with(NOTHING, [report]))

    text = page.read_text("utf-8")
    assert f"{BEGIN}\nqueue\n{END}" in text
    assert "old" not in text
    assert "| 70,000 | 140,000 | 0.50 | ≥ 60,000 events/s | reached | d `e` |" in text


def test_each_row_is_kept_as_it_was_measured_last() -> None:
    """With its commit; what was not measured again stays, and a row that is no more goes."""
    row, other = named("http-ndjson"), named("sse-1000-p99")
    (first,) = outcomes([row], forged(row, [1], [2]))
    (again,) = outcomes([row], forged(row, [3, 4, 5], [2]))
    (alone,) = outcomes([other], forged(other, [50], []))
    reports = [
        {"command": "c", "date": "d", "commit": commit, "statement": {PATH: [commit]}, "rows": [one.to_json()]}
        for one, commit in ((first, "e"), (alone, "f"), (again, "g"))
    ]
    kept = kept_with({"rows": {"gone": {"name": "gone"}}, "statement": {}}, reports[:2])
    kept = kept_with(kept, reports[2:])

    assert {name: (one["ours"], one["commit"]) for name, one in kept["rows"].items()} == {
        row.name: (4, "g"),
        other.name: (50, "f"),
    }
    assert kept["statement"] == {PATH: ["g"]}
    assert "| d `g`, 3 rounds |" in render(kept, PATH)
    assert alone.is_reached is True


def test_a_commit_is_not_inside_a_batch() -> None:
    """What was sent while a query committed counts across commits only."""
    second = 1_000_000_000
    calm = [Sample(at * second, 2_000_000) for at in range(100)]
    stalled = Sample(50 * second, 500_000_000)

    found = summary([*calm, stalled], [50 * second, 500 * second])

    assert found["boundaries"] == 1
    assert found["in_p999"] == 2
    assert found["max"] == 500


def test_a_query_that_gave_no_result_is_no_measurement() -> None:
    """Nothing is not fast."""
    with pytest.raises(ValueError, match="nothing was measured"):
        summary([], [])


def test_what_the_host_kept_back_is_told(tmp_path: Path) -> None:
    """Two lines of /proc/stat: user, nice, system, idle, waiting, interrupts twice, stolen, and guests of its own."""
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 50 800 10 0 0 40 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    before = ticks_now(stat)
    assert before == Ticks(40, 1_000)
    stat.write_text("cpu  150 0 50 820 10 0 0 70 9 0\n")
    assert stolen_percent(before, ticks_now(stat)) == 30.0
    assert stolen_percent(before, before) == 0.0


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"statuses": {"202": 9, "503": 1}}, '"503": 1'),
        ({"statuses": {}}, "not every answer was 202"),
        ({"errors": 1}, "1 requests failed"),
        ({"unanswered": 66}, "66 of 64 connections got no answer"),
    ],
)
def test_an_http_load_fails_when_a_request_was_not_accepted(found: dict[str, Any], why: str) -> None:
    """One request of each connection is under way when the load ends."""
    report = {"requests_per_s": 5.0, "statuses": {"202": 9}, "errors": 0, "unanswered": 65}
    assert checked(dict(report), connections=64) == {"requests_per_s": 5.0}
    with pytest.raises(PenstockError, match=why):
        checked(report | found, connections=64)


def test_the_http_rows_name_the_package_of_a_missing_wrk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PenstockError, match="apt install wrk"):
        find_wrk()
