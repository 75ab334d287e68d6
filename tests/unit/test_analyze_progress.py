"""The numbers of a query from what Spark reports."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.analyze.progress import Numbers, is_caught_up, is_time_for_letters, lag_behind, take_progress, unseen


def progress(**changes: Any) -> dict[str, Any]:
    return {
        "batchDuration": 2_000,
        "numInputRows": 41,
        "stateOperators": [
            {"numRowsTotal": 7, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 2},
            {"numRowsTotal": 1, "memoryUsedBytes": 1},
        ],
        "eventTime": {"watermark": "2026-11-16T00:00:00.000Z"},
        "sources": [{"endOffset": {"in": {"0": 41, "1": 3}}}, {"endOffset": '{"other": {"0": 5}}'}],
        "sink": {"numOutputRows": 20},
    } | changes


def test_rates_state_and_positions_are_taken() -> None:
    numbers = Numbers()
    take_progress(numbers, progress(), 99)
    assert (numbers.rows_in_per_s, numbers.rows_out_per_s) == (20.5, 10.0)
    assert (numbers.state_rows, numbers.state_bytes, numbers.checkpoint_ms) == (8, 101, 99)
    assert numbers.positions == {"in": {"0": 41, "1": 3}, "other": {"0": 5}}
    assert numbers.watermark == "2026-11-16T00:00:00.000Z"


def test_what_spark_does_not_know_stays_unknown() -> None:
    numbers = Numbers()
    bare = {"numInputRows": 0, "sources": [{"endOffset": None}], "sink": {"numOutputRows": -1}}
    take_progress(numbers, bare, 1)
    assert (numbers.rows_out_per_s, numbers.rows_in_per_s) == (None, None)
    assert (numbers.state_rows, numbers.late) == (None, None)
    assert (numbers.positions, lag_behind(numbers, {("in", 0): 5}, {})) == ({}, None)


def test_what_a_sink_of_ours_wrote_counts_where_spark_does_not_know() -> None:
    numbers = Numbers()
    take_progress(numbers, progress(sink={"numOutputRows": -1}), 1, 12)
    take_progress(numbers, progress(sink={"numOutputRows": -1}), 2, 0)
    assert (numbers.rows_out, numbers.rows_out_per_s) == (12, 0.0)


def test_a_later_progress_moves_positions_and_adds_up_rows() -> None:
    numbers = Numbers()
    take_progress(numbers, progress(), 1)
    before = numbers.positions
    take_progress(numbers, progress(sources=[{"endOffset": {"in": {"0": 50}}}]), 2)
    assert numbers.positions["in"] == {"0": 50, "1": 3}
    assert before["in"]["0"] == 41
    assert (numbers.rows_in, numbers.rows_out, numbers.late) == (82, 40, 4)


def test_lag_is_what_stands_behind_the_positions() -> None:
    numbers = Numbers()
    take_progress(numbers, progress(), 1)
    assert lag_behind(numbers, {("in", 0): 45, ("in", 1): 2, ("other", 0): 6}, {}) == 5


def test_what_a_result_was_seen_of_is_no_longer_before_the_query() -> None:
    """A real-time query commits twice a minute and answers in milliseconds: its lag is what has no result yet."""
    numbers, ends = Numbers(), {("in", 0): 100, ("in", 1): 10}
    assert lag_behind(numbers, ends, {("in", 0): 100}) is None, "nobody knows of partition 1"
    assert lag_behind(numbers, ends, {("in", 0): 97, ("in", 1): 12}) == 3
    take_progress(numbers, progress(), 1)
    assert lag_behind(numbers, ends, {}) == 59 + 7
    assert lag_behind(numbers, ends, {("in", 0): 99, ("in", 1): 2}) == 1 + 7


def test_batches_that_ended_between_two_looks_are_all_counted() -> None:
    """Each once, and those of another run all."""
    recent = [{"runId": "run", "batchId": number} for number in (3, 4, 5, 5, 6)]
    assert [progress["batchId"] for progress in unseen(recent, ("run", 4))] == [5, 6]
    assert [progress["batchId"] for progress in unseen(recent, ("before", 9))] == [3, 4, 5, 6]
    assert [progress["batchId"] for progress in unseen(recent, None)] == [3, 4, 5, 6]


def test_a_query_is_behind_until_it_is_known_that_little_is_before_it() -> None:
    """Nothing known, then a backlog of full batches, then less than half of one."""
    numbers = Numbers()
    assert not is_caught_up(numbers, {})
    assert not is_caught_up(numbers, {("in", 0): 5_000_000})
    for taken, left in ((1_000_000, 4_000_000), (2_000_000, 3_000_000)):
        took = progress(numInputRows=1_000_000, sources=[{"endOffset": {"in": {"0": taken}}}])
        take_progress(numbers, took, 1)
        assert not is_caught_up(numbers, {("in", 0): taken + left})
    assert is_caught_up(numbers, {("in", 0): 2_400_000})


def test_a_query_without_a_batch_is_caught_up_where_there_is_hardly_anything() -> None:
    assert is_caught_up(Numbers(), {("in", 0): 12, ("in", 1): 0})


@pytest.mark.parametrize(
    ("since_s", "have_all_begun", "is_any_behind", "is_time"),
    [
        (1.0, False, False, False),
        (1.0, True, False, True),
        (1.0, True, True, False),
        (20.0, False, False, True),
        (299.0, True, True, False),
        (300.0, False, True, True),
    ],
)
def test_dead_letters_wait_for_queries_that_begin_or_catch_up(
    since_s: float, have_all_begun: bool, is_any_behind: bool, is_time: bool
) -> None:
    """But for five minutes at most."""
    assert is_time_for_letters(since_s, have_all_begun=have_all_begun, is_any_behind=is_any_behind) is is_time
