"""The life of a query: what it does about each way to fail."""

from __future__ import annotations

from penstock.analyze.failures import Failure, failure_of, lost_words
from penstock.analyze.lifecycle import BACKOFF_MS_MAX, BACKOFF_MS_MIN, Lifecycle, ready_words

FAULT = Failure("fault", "division by zero")
AWAY = Failure("away", "a timeout")


def started() -> Lifecycle:
    life = Lifecycle(restarts_max=3, restart_window_ms=60_000)
    life.on_starting()
    life.on_started()
    return life


def test_a_query_starts_once_and_then_runs() -> None:
    life = Lifecycle(restarts_max=3, restart_window_ms=60_000)
    assert (life.state, life.wants_start(0)) == ("starting", True)
    life.on_starting()
    life.on_started()
    assert (life.state, life.wants_start(0), life.restarts) == ("running", False, 0)


def test_a_fault_is_followed_by_a_restart_after_a_moment() -> None:
    life = started()
    life.on_ended(FAULT, 1_000)
    assert (life.state, life.reason) == ("restarting", "division by zero")
    assert not life.wants_start(1_000 + BACKOFF_MS_MIN - 1)
    assert life.wants_start(1_000 + BACKOFF_MS_MIN)
    life.on_starting()
    life.on_started()
    assert (life.state, life.reason, life.restarts) == ("running", None, 1)


def test_each_fault_in_a_row_waits_longer_up_to_a_bound() -> None:
    life = Lifecycle(restarts_max=100, restart_window_ms=10**9)
    waits, now_ms = [], 0
    for _ in range(12):
        life.on_ended(FAULT, now_ms)
        wait = next(wait for wait in range(BACKOFF_MS_MAX + 1) if life.wants_start(now_ms + wait))
        waits.append(wait)
        now_ms += wait
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (BACKOFF_MS_MIN, BACKOFF_MS_MAX)


def test_progress_ends_the_row() -> None:
    life = started()
    for _ in range(3):
        life.on_ended(FAULT, 0)
    life.on_progress()
    life.on_ended(Failure("away", "x"), 10_000)
    assert life.wants_start(10_000 + BACKOFF_MS_MIN)


def test_too_many_faults_in_the_window_park_it_for_good() -> None:
    life = started()
    for now_ms in (0, 1, 2, 3):
        life.on_ended(FAULT, now_ms)
    assert life.state == "parked"
    assert life.reason == "failed 4 times within 60 s: division by zero"
    assert not life.wants_start(10**12)
    life.on_queue(False, "here")
    life.on_queue(True, "here")
    assert life.state == "parked"


def test_faults_longer_ago_than_the_window_are_forgotten() -> None:
    life = started()
    for now_ms in (0, 30_000, 60_000, 90_000, 120_000, 150_000):
        life.on_ended(FAULT, now_ms)
    assert life.state == "restarting"


def test_a_queue_that_is_away_is_waited_for_and_never_parks() -> None:
    life = started()
    for now_ms in range(100):
        life.on_ended(AWAY, now_ms)
    assert (life.state, life.reason) == ("waiting", "a timeout")
    life.on_queue(False, "host:9092")
    assert not life.wants_start(10**9)
    life.on_queue(True, "host:9092")
    assert life.wants_start(10**9)


def test_a_running_query_waits_while_the_queue_does_not_answer() -> None:
    life = started()
    life.on_queue(False, "host:9092")
    assert (life.state, life.reason) == ("waiting", "the queue at host:9092 does not answer")
    life.on_queue(True, "host:9092")
    assert (life.state, life.reason, life.wants_start(0)) == ("running", None, False)


def test_lost_data_parks_at_once_instead_of_skipping() -> None:
    life = started()
    life.on_ended(Failure("lost", "gone"), 0)
    assert (life.state, life.reason) == ("parked", "gone")


def test_a_mode_that_spark_refuses_is_tried_again_at_once() -> None:
    life = started()
    life.on_ended(Failure("refused", "sort: not in Real-Time Mode"), 5)
    assert life.wants_start(5)


def test_what_was_stopped_stays_stopped_and_what_was_parked_stays_parked() -> None:
    life = started()
    life.on_stopped()
    assert (life.state, life.wants_start(10**9)) == ("stopped", False)
    life.park("why")
    life.on_stopped()
    assert life.state == "parked"


def test_failures_are_told_apart_by_what_spark_says() -> None:
    """Texts as Spark 4.3 and Kafka's client write them."""
    away = (
        "x\nCaused by: org.apache.kafka.common.errors.TimeoutException: Timeout expired while fetching topic metadata"
    )
    assert failure_of(away) == Failure("away", "Timeout expired while fetching topic metadata")
    lost = "[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost because"
    assert failure_of(lost).kind == "lost"
    refused = (
        "[STREAMING_REAL_TIME_MODE.OPERATOR_OR_SINK_NOT_IN_ALLOWLIST] The operator(s): SortMergeJoinExec not in "
        "Real-Time Mode allowlist"
    )
    assert failure_of(refused) == Failure("refused", "SortMergeJoinExec: not in Real-Time Mode")
    fault = (
        "aborted\nCaused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 1"
    )
    assert failure_of(fault) == Failure("fault", "[DIVIDE_BY_ZERO] Division by zero.")
    assert failure_of("").kind == "fault"


def test_a_checkpoint_outside_its_topic_is_said_and_never_skipped() -> None:
    """Ahead of the end: the topic was made anew. Behind the beginning: retention ate what was not yet read."""
    positions = {"t": {0: 5, 1: 7}}
    assert lost_words(positions, {("t", 0): (0, 5), ("t", 1): (7, 9)}) is None
    assert "the topic ends at 4" in str(lost_words(positions, {("t", 0): (0, 4), ("t", 1): (0, 9)}))
    assert "the topic begins at 8" in str(lost_words(positions, {("t", 0): (0, 5), ("t", 1): (8, 9)}))
    assert lost_words(positions, {}) is None, "a queue that does not answer is waited for"
    assert lost_words({}, {("t", 0): (3, 4)}) is None


def test_ready_does_not_hide_what_is_parked() -> None:
    assert ready_words(["running", "waiting"]) == "ready 2 queries"
    assert ready_words(["running", "parked", "parked"]) == "ready 3 queries, 2 of them parked"


def test_a_query_whose_state_does_not_fit_any_more_is_parked_with_the_way_out() -> None:
    """Trying again would not heal it."""
    said = "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key schema."
    failure = failure_of(said)
    assert failure.kind == "lost"
    assert "penstock queries start" in failure.reason
