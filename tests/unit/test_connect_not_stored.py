"""Which errors of the queue are permanent, and what is answered where several events failed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.not_stored import Failure, common_status, failure_of
from penstock.connect.responses import FAULTS_MAX, not_stored
from penstock.edge.event_sizes import HEADROOM, event_batch_size, size_failure
from penstock.events.headers import ID_LENGTH_MAX


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("MSG_SIZE_TOO_LARGE", 413), ("RECORD_LIST_TOO_LARGE", 413),
        ("INVALID_MSG", 400), ("INVALID_RECORD", 400), ("INVALID_TIMESTAMP", 400), ("POLICY_VIOLATION", 400),
        ("TOPIC_AUTHORIZATION_FAILED", 403), ("CLUSTER_AUTHORIZATION_FAILED", 403),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 403), ("SASL_AUTHENTICATION_FAILED", 403),
        ("UNSUPPORTED_SASL_MECHANISM", 403), ("ILLEGAL_SASL_STATE", 403), ("_AUTHENTICATION", 403),
        ("UNKNOWN_TOPIC_OR_PART", 503), ("_UNKNOWN_TOPIC", 503), ("_MSG_TIMED_OUT", 503), ("_PURGE_QUEUE", 503),
        ("_FATAL", 503), ("_QUEUE_FULL", 503), ("KAFKA_STORAGE_ERROR", 503), ("NOT_ENOUGH_REPLICAS", 503),
        ("_TRANSPORT", 503), ("UNKNOWN", 503), ("THROTTLING_QUOTA_EXCEEDED", 503),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", 503),
    ],
)  # fmt: skip
def test_an_error_of_librdkafka_has_a_status(name: str, status: int) -> None:
    """The table has numbers; these are the names that librdkafka gives them."""
    error = KafkaError(getattr(KafkaError, name))
    failure = failure_of(error.code(), error.str(), drops=False)
    assert (failure.status, failure.reason) == (status, error.str())
    assert failure.is_permanent == (status < 429)


def test_an_error_that_only_another_record_of_the_batch_caused_passes() -> None:
    """librdkafka's _INVALID_DIFFERENT_RECORD."""
    assert failure_of(-138, "another record", drops=False).status == 503


def test_a_full_queue_is_429_only_where_events_may_be_dropped() -> None:
    full = KafkaError._QUEUE_FULL
    assert [failure_of(full, "full", drops=drops).status for drops in (False, True)] == [503, 429]
    assert failure_of(KafkaError._MSG_TIMED_OUT, "late", drops=True).status == 503


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ([413], 413), ([400, 400], 400), ([400, 413], 400), ([403, 413], 400), ([413, 503], 503), ([403, 429], 503),
        ([429], 429), ([429, 503], 503),
    ],
)  # fmt: skip
def test_a_status_of_several_is_passing_if_one_is(statuses: list[int], status: int) -> None:
    assert common_status(statuses) == status


def answered(count: int, failed: dict[int, Failure]) -> tuple[int, dict[str, Any], bool]:
    answer = not_stored([f"id-{number}" for number in range(count)], failed)
    return answer.status, json.loads(answer.body), b"retry-after" in dict(answer.headers)


def test_each_event_that_was_not_stored_has_its_reason_and_whether_a_retry_helps() -> None:
    status, body, is_retried = answered(4, {3: Failure(503, "late"), 1: Failure(413, "too large")})
    assert (status, is_retried) == (503, True)
    assert (body["stored"], body["unknown"]) == (["id-0", "id-2"], ["id-1", "id-3"])
    assert body["faults"] == [
        {"event": 1, "id": "id-1", "error": "too large", "retry": False},
        {"event": 3, "id": "id-3", "error": "late", "retry": True},
    ]
    assert "did not acknowledge 1 of 4" in body["error"]
    assert "refused 1 of 4" in body["error"]


def test_where_all_are_refused_there_is_no_retry_after() -> None:
    status, body, is_retried = answered(2, {1: Failure(413, "too large")})
    assert (status, is_retried) == (413, False)
    assert "does not help" in body["error"]


def test_the_faults_are_bounded_and_the_rest_is_counted() -> None:
    _, body, _ = answered(1_000, dict.fromkeys(range(500), Failure(503, "late")))
    assert len(body["faults"]) == FAULTS_MAX
    assert body["faults_left_off"] == 500 - FAULTS_MAX
    assert len(body["unknown"]) == 500


@pytest.mark.parametrize(
    ("size", "bytes_max", "is_known", "status"),
    [(1_001, 1_000, True, 413), (1_000, 1_000, True, 503), (10, None, True, 413), (1_001, 1_000, False, 503)],
    ids=["too large", "fits, in a batch of several", "no limit is told", "the queue is away"],
)
def test_a_size_refusal_is_permanent_for_an_event_that_exceeds_the_limit_of_now(
    size: int, bytes_max: int | None, is_known: bool, status: int
) -> None:
    assert size_failure("too large", size, "t", bytes_max, is_known=is_known).status == status


@given(value=st.integers(0, 20_000_000), key=st.none() | st.integers(0, 20_000_000), id=st.text(max_size=ID_LENGTH_MAX))
def test_the_quick_check_never_passes_an_event_that_does_not_fit(value: int, key: int | None, id: str) -> None:
    """HEADROOM bounds what an event without headers of its own needs besides value and key."""

    class Bytes(bytes):
        def __new__(cls, size: int) -> Bytes:
            made = super().__new__(cls)
            made.size = size
            return made

        def __len__(self) -> int:
            return self.size

    size = event_batch_size(Bytes(value), None if key is None else Bytes(key), id, None)
    assert value + (key or 0) < size <= value + (key or 0) + HEADROOM
