"""The numbers on the pages are those of the code, and those of "How fast" are those of the benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.analyze import processing, progress, reporter, result_latency
from penstock.client import lease, topic_limits, topic_writes
from penstock.config.analyze import AnalyzeConfig
from penstock.config.broker import BrokerConfig
from penstock.config.edge import EdgeConfig
from penstock.connect.responses import FAULTS_MAX
from penstock.edge import group_metrics, operator_routes
from penstock.edge.event_sizes import event_batch_size
from penstock.events.headers import ID_LENGTH_MAX
from penstock.events.query_status import SILENT_AFTER_MS
from penstock.queue.core import partition, produce_template
from penstock.queue.groups.consumer import pattern, regex
from penstock.queue.server import close_log, new_connections
from penstock.supervisor import child
from proof.abuse import abuse_test, latency_probe

ROOT = Path(__file__).parents[2]
BROKER, EDGE, ANALYZE = BrokerConfig(), EdgeConfig(), AnalyzeConfig()
GROUPS = f"for the first {group_metrics.GROUPS_MAX} groups by name; asked at most every {group_metrics.KNOWN_S:.0f} s"
MINUTES = ANALYZE.restart_window_ms // 60_000
RESTARTS = f"after {ANALYZE.restarts_max} restarts in {MINUTES} minutes the next failure parks it"
SAID = [
    ("README.md", f"`memory_reserve`, {BROKER.memory_reserve:,}"),
    ("README.md", f"in up to {ANALYZE.batch_events_max:,} events (`analyze.batch_events_max`)"),
    ("CHANGELOG.md", f"up to {produce_template.SHAPES_MAX} partitions by turns"),
    ("CHANGELOG.md", f"up to {partition.DAMAGES_MAX} of a partition"),
    ("docs/differences.md", f"`memory_reserve`, {BROKER.memory_reserve:,}"),
    ("docs/differences.md", f"{BROKER.group_initial_delay_ms} ms more (`group_initial_delay_ms`)"),
    ("docs/differences.md", f"one of more than {BROKER.transactional_id_chars_max:,} characters"),
    ("docs/differences.md", f"more than {BROKER.transaction_groups_max} groups in one transaction"),
    ("docs/guarantees.md", f"goes on in its place after {lease.UNSAFE_AFTER_S:.0f} s"),
    ("docs/guarantees.md", f"the lease is free after {lease.FREE_AFTER_MS // 1000} s"),
    ("docs/guarantees.md", f"when the lease was not renewed for {lease.UNSAFE_AFTER_S:.0f} s"),
    ("docs/ingest.md", f"It has at most {ID_LENGTH_MAX} characters"),
    ("docs/ingest.md", f"(the first {FAULTS_MAX})"),
    ("docs/differences.md", f"at most {pattern.PATTERN_CHARS_MAX:,} characters and {regex.STATES_MAX} states"),
    ("docs/ingest.md", f"at its start, every {topic_limits.EVERY_S:.0f} s"),
    ("docs/operations.md", f"no broker answered within {operator_routes.READY_WITHIN_S:.0f} s"),
    ("docs/operations.md", f"every second, and {SILENT_AFTER_MS // 1000} s are too long"),
    ("docs/operations.md", f"`silent` (no report for {SILENT_AFTER_MS // 1000} s)"),
    ("docs/operations.md", f"`edge.stalled_after_ms` ({EDGE.stalled_after_ms // 1000} s)"),
    ("docs/operations.md", GROUPS),
    ("docs/operations.md", f"of up to {result_latency._SAMPLE_MAX} results of each partition a second"),
    ("docs/operations.md", f"`NAME.log.1` at {child.LOG_BYTES_MAX // 2**20} MiB"),
    ("docs/operations.md", RESTARTS),
    ("docs/testing.md", f"writes a record every {latency_probe.BEAT_S * 1000:.0f} ms"),
    ("docs/testing.md", f"syncs a block beside the broker's files every {latency_probe.DISK_BEAT_S * 1000:.0f} ms"),
    ("docs/testing.md", f"more than {abuse_test.TIMES_MAX} times the p99"),
    ("docs/testing.md", f"fewer than {latency_probe.BEATS_MIN} beats"),
    ("docs/testing.md", f"grew by more than {abuse_test.GROWTH_MAX // abuse_test.MIB} MiB"),
]


@pytest.mark.parametrize(("page", "said"), SAID, ids=[f"{page}: {said}" for page, said in SAID])
def test_a_number_on_a_page_is_that_of_the_code(page: str, said: str) -> None:
    assert said in " ".join((ROOT / page).read_text().split())


def test_numbers_that_pages_say_in_words_are_those_of_the_code() -> None:
    """A second, a minute, two of them, three times as long, five lines."""
    assert (new_connections.PATIENCE_MS, new_connections.SERVED_AT_ONCE, new_connections.RESTS) == (1000, 2, 3)
    assert (new_connections.REST_NS_MAX, close_log.LINES_EACH, close_log.WINDOW_MS) == (50_000_000, 5, 1000)
    assert (BROKER.reply_deadline_ms, topic_writes.FAULT_KNOWN_S, processing.WINDOW_MS) == (60_000, 60.0, 60_000)
    assert (operator_routes.READY_KNOWN_S, reporter._EVERY_S, ANALYZE.dead_letters_every_ms) == (1.0, 1.0, 60_000)
    assert progress._LETTERS_AT_LAST_S == 300


def test_the_edge_adds_at_most_250_bytes_to_an_event() -> None:
    """As docs/ingest.md says: besides its id, also where value, key and id have long lengths."""
    for size in (0, 100, 10_000, 5_000_000):
        for id in ("", "x" * ID_LENGTH_MAX):
            assert event_batch_size(b"v" * size, b"k" * size, id, None) - 2 * size - len(id) <= 250


def test_how_fast_agrees_with_the_benchmarks() -> None:
    lines = (ROOT / "docs" / "benchmarks.md").read_text().splitlines()
    rows = {row[0].strip("`"): row for row in (line.strip("| ").split(" | ") for line in lines if line[:3] == "| `")}

    def ours(name: str, column: int = 3) -> float:
        return float(rows[name][column].split()[0].replace(",", ""))

    def times(name: str) -> float:
        return ours(name, 5)

    said = " ".join((ROOT / "README.md").read_text().split("## How fast")[1].split("\n## ")[0].split())
    for words in (
        f"{times('produce-100B')} (100 B) to {times('produce-1KB')} (1 KB) of its rate",
        f"{times('produce-100B-fsync'):.1f} to {times('produce-1KB-fsync'):.1f} times when both sync",
        f"in {times('e2e-p50'):.1f} times Kafka's median and {times('e2e-p99'):.1f} times its p99",
        f"with {100 * times('memory-after-load'):.0f} % of the memory",
        f"{times('transactions-1p'):.1f} times Kafka's rate when both sync ({times('transactions-10p'):.1f} times",
        f"to {times('requests-1-inflight')} times Kafka's answers",
        f"with twenty in flight {times('requests-20-inflight'):.1f} times",
        f"{ours('pipeline-filter-200-p50'):.1f} ms (filter) to {ours('pipeline-count-200-p50'):.1f} ms (count by key)",
        f"{times('pipeline-filter-200-p50'):.1f} and {times('pipeline-count-200-p50'):.1f} times plain PySpark",
        f"{times('pipeline-filter-200-p50-fsync'):.1f} and {times('pipeline-count-200-p50-fsync'):.1f} times with;",
        f"at 2,000/s {ours('pipeline-filter-2000-p50'):.1f} and {ours('pipeline-count-2000-p50'):.1f} ms",
        f"{times('pipeline-filter-2000-p50'):.1f} and {times('pipeline-count-2000-p50'):.1f} times (on a slower disk",
        f"over HTTP in {ours('wait-100-p50'):.0f} ms",
        f"caught up with at {times('catch-up'):.1f} times plain PySpark's rate",
        f"first result after {ours('first-result'):.1f} s, plain PySpark after {ours('first-result', 4):.0f}.",
    ):
        assert words in said, words
    for level in ("consume-100B", "consume-1KB", "transactions-1p-default", "transactions-10p-default"):
        assert 0.9 <= times(level) <= 1.1, level
