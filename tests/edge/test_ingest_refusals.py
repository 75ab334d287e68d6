"""A real queue refuses events: what is permanent is answered with 4xx, and the sender can stop."""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.edge.memory_budget import EVENT_OVERHEAD_BYTES
from tests.edge.edge_stage import Answer, EdgeStage
from tests.edge.live_stage import until

NDJSON = "application/x-ndjson"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    """The queue refuses every record of `notes` that is older than 0 ms when it comes."""
    built = EdgeStage(tmp_path_factory.mktemp("refusals"))
    built.alter("notes", "message.timestamp.before.max.ms", "0")
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()


def post_late(stage: EdgeStage, body: Any, **headers: str) -> Answer:
    """Send to a paused broker. It resumes when the records have a timestamp in the past, which the topic refuses.

    The edge counts the overhead of an event in the same step in which it gives the event to librdkafka, and librdkafka
    sets the timestamp then.
    """
    until(lambda: stage.metric("inflight_bytes") == 0)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        stage.broker.pause()
        try:
            answer = pool.submit(stage.post, "/ingest/shop/notes", body, **headers)
            until(lambda: stage.metric("inflight_bytes") >= EVENT_OVERHEAD_BYTES)
            produced_ms = now_ms()
            until(lambda: now_ms() > produced_ms)
        finally:
            stage.broker.wake()
        return answer.result()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_permanent_refusal_of_the_queue_is_400_without_retry_after(stage: EdgeStage) -> None:
    refused, unstored = (
        stage.metric('refused_total{reason="queue"}'),
        stage.metric('events_unstored_total{topic="notes"}'),
    )
    answer = post_late(stage, [{"text": "a"}, {"text": "b"}, {"text": "c"}])
    assert answer.status == 400
    assert "retry-after" not in answer.headers
    assert (answer.json["stored"], len(answer.json["unknown"])) == ([], 3)
    assert [fault["event"] for fault in answer.json["faults"]] == [0, 1, 2]
    assert all("timestamp" in fault["error"] and not fault["retry"] for fault in answer.json["faults"])
    assert stage.metric('refused_total{reason="queue"}') == refused + 3
    assert stage.metric('events_unstored_total{topic="notes"}') == unstored
    assert not stage.stored("notes")


def test_a_line_that_the_queue_refuses_is_a_bad_line(stage: EdgeStage) -> None:
    refused = stage.metric('refused_total{reason="queue"}')
    answer = post_late(stage, b'{"text":"a"}\nnonsense\n{"text":"b"}\n', Content_Type=NDJSON)
    assert answer.status == 400
    assert (answer.json["accepted"], answer.json["refused"], answer.json["unstored"]) == (0, 3, 0)
    assert sorted(fault["line"] for fault in answer.json["faults"]) == [1, 2, 3]
    assert stage.metric('refused_total{reason="queue"}') == refused + 2


def test_the_edge_goes_on_after_a_refusal(stage: EdgeStage) -> None:
    """An idempotent producer continues with the next events of its topics."""
    post_late(stage, {"text": "late"})
    assert stage.post("/ingest/purchases", {"id": "after"}).status == 202
