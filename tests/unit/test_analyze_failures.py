"""What a query ended of, read from the texts of real Spark runs (tests/unit/spark_errors)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.analyze.exactly_once.batch_tokens import TokenError
from penstock.analyze.exactly_once.transactional_sink import _failure
from penstock.analyze.failures import AwayError, Failure, failure_of, failure_text
from penstock.analyze.python_error import last_python_error
from penstock.jvm.worker_output import WorkerOutput

TEXTS = Path(__file__).parent / "spark_errors"
ZERO = "ZeroDivisionError: integer division or modulo by zero"
FENCED = (
    "another process writes with the transactional id penstock.udfs.once.batches, or this transaction took too long: "
    "Failed to add partitions to transaction: Local: This instance has been fenced by a newer instance"
)


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("udf_raises", "fault", f"{ZERO} (udfs.py, line 17, in divide)"),
        ("udf_raises_in_foreach_batch", "fault", f"{ZERO} (apps2.py, line 12, in divide)"),
        (
            "udf_missing_module",
            "fault",
            "ModuleNotFoundError: No module named 'nowhere_to_be_found' (udfs.py, line 23, in divide)",
        ),
        ("function_of_a_missing_module", "fault", "ModuleNotFoundError: No module named 'helper_beside'"),
        ("worker_exit", "fault", "the Python worker died; last output of Python workers: out of luck"),
        (
            "worker_segfault",
            "fault",
            "the Python worker died: Fatal Python error: Segmentation fault (udfs.py, line 40, in divide); "
            "last output of Python workers: out of luck",
        ),
        ("fenced", "fault", FENCED),
        ("read_timeout", "away", "Timeout of 4000ms expired before the position for partition in_micro-0 could be"),
        ("foreach_batch_read_timeout", "away", "Timeout of 4000ms expired before the position for partition in_once-0"),
        ("sink_timeout", "away", "Expiring 109 record(s) for out_real-0:4001 ms has passed since batch creation"),
        ("transaction_timeout", "away", "Failed to flush all outstanding messages within the API timeout"),
        ("admin_disconnect", "away", "Cancelled listNodes request with correlation id 163 due to node 1 being"),
        ("admin_no_node", "away", "Timed out waiting for a node assignment. Call: listNodes"),
        ("topic_missing", "away", "This server does not host this topic-partition."),
        ("no_slots", "away", "it needs 6 task slots at once, and 2 are free: add Spark executors"),
        ("offset_out_of_range", "lost", "the topic no longer holds what the checkpoint points to"),
    ],
)
def test_a_real_error_of_spark_has_its_kind_and_its_reason(text: str, kind: str, reason: str) -> None:
    failure = failure_of((TEXTS / f"{text}.txt").read_text(), lambda: "out of luck")
    assert failure.kind == kind
    assert failure.reason.startswith(reason)
    assert "\n" not in failure.reason


def test_every_collected_text_is_tested() -> None:
    tested = test_a_real_error_of_spark_has_its_kind_and_its_reason.pytestmark[0].args[1]  # type: ignore[attr-defined]
    assert {name for name, *_ in tested} == {path.stem for path in TEXTS.iterdir()}


@pytest.mark.parametrize(
    ("name", "kind"),
    [("NetworkException", "away"), ("DisconnectException", "away"), ("TimeoutException", "away"),
     ("UnknownTopicOrPartitionException", "away"), ("NotLeaderOrFollowerException", "away"),
     ("RecordTooLargeException", "fault")],
)  # fmt: skip
def test_errors_of_the_network_are_waited_for(name: str, kind: str) -> None:
    said = f"Job aborted\nCaused by: org.apache.kafka.common.errors.{name}: the reason"
    assert failure_of(said) == Failure(kind, "the reason")  # type: ignore[arg-type]


def test_a_fetch_that_is_not_answered_is_waited_for() -> None:
    said = "java.util.concurrent.TimeoutException: Cannot fetch record for offset 7 in 120000 milliseconds"
    assert failure_of(said).kind == "away"


def test_a_network_word_in_an_error_of_the_app_is_no_outage() -> None:
    said = (
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):\n"
        '  File "/app/shop.py", line 3, in price\n    call()\nConnectionError: Connection refused\n'
    )
    assert failure_of(said) == Failure("fault", "ConnectionError: Connection refused (shop.py, line 3, in price)")


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001  # it is what the test is about
        return caught


def test_errors_of_ours_are_known_by_their_class() -> None:
    assert failure_of(failure_text(raised(AwayError("no answer")))) == Failure("away", "no answer")
    assert failure_of(failure_text(raised(TokenError("another checkpoint")))) == Failure("lost", "another checkpoint")
    assert failure_of(failure_text(raised(ValueError("a: b")))).reason.startswith("ValueError: a: b (test_analyze")
    assert failure_of(failure_text(None)) == Failure("fault", "it ended without a reason")


def test_the_class_names_of_java_are_in_the_cause_and_the_plan_is_left_out() -> None:
    """PySpark's StreamingQueryException has the first message in its text, and two Java frames of its own."""
    cause = SimpleNamespace(
        _stackTrace="java.util.concurrent.ExecutionException: x\n\tat java.base/java.util.A.get(A.java:4)\n"
        "\t... 9 more\nCaused by: org.apache.kafka.common.errors.TimeoutException: timed out\n",
        _cause=None,
    )

    class Captured(Exception):
        _stackTrace = "org.apache.spark.Outer.run(Outer.scala:1)"
        _cause = cause

    text = failure_text(Captured("timed out\n=== Streaming Query ===\nPlan: Connection refused"))
    assert "Plan" not in text
    assert "A.java" not in text
    assert failure_of(text) == Failure("away", "timed out")


def test_a_message_of_several_lines_is_whole() -> None:
    said = (
        'Traceback (most recent call last):\n  File "/app/shop.py", line 3\nValueError: one\n  two\n SQLSTATE: 38000\nx'
    )
    assert last_python_error(said) == ("ValueError", "one two", "shop.py, line 3")


def test_a_library_is_not_the_place_of_an_error() -> None:
    frames = (
        '  File "/app/shop.py", line 3, in price\n  File "/usr/lib/python3.11/json/decoder.py", line 9, in decode\n'
    )
    error = last_python_error(f"Traceback (most recent call last):\n{frames}ValueError: bad")
    assert error is not None
    assert error.where == "shop.py, line 3, in price"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, "away"),
        (KafkaError._TIMED_OUT, "away"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "away"),
        (KafkaError._FENCED, "fault"),
        (KafkaError.PRODUCER_FENCED, "fault"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "fault"),
    ],
)
def test_a_transaction_that_fails_tells_whether_it_passes(code: int, kind: str) -> None:
    error = _failure(KafkaException(KafkaError(code, "why")), "t")
    failure = failure_of(failure_text(raised(error)))
    assert failure.kind == kind
    assert "why" in failure.reason


def test_the_last_output_of_workers_is_that_since_a_start(tmp_path: Path) -> None:
    file = tmp_path / "spark.out"
    output = WorkerOutput(file)
    assert (output.size, output.last_words(0)) == (0, "")
    file.write_text("before\n")
    since = output.size
    assert output.last_words(since) == ""
    file.write_text("before\none\n\ntwo\nthree\nfour\n")
    assert output.last_words(since) == "two / three / four"
