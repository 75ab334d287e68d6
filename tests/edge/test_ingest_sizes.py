"""A topic of a real queue takes batches up to max.message.bytes: each event that fits is stored, another is refused."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.app import App
from penstock.client.topic_limits import TopicLimits
from penstock.config.edge import EdgeConfig
from penstock.edge.event_sizes import event_batch_size
from penstock.edge.intake import Intake
from penstock.events.event import Event
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.planner import plan_app
from penstock.sources import Http
from tests.edge.edge_stage import DEADLINE_S, EdgeStage

NDJSON = "application/x-ndjson"
LIMIT = 2_000


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    """The edge starts when `purchases` takes batches up to LIMIT."""
    built = EdgeStage(tmp_path_factory.mktemp("sizes"))
    built.end_edge()
    built.alter("purchases", "max.message.bytes", str(LIMIT))
    built.start_edge()
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()


def event(id: str, pad: int, card: str = "1") -> dict[str, Any]:
    return {"id": id, "card": card, "pad": "x" * pad}


def stored_ids(stage: EdgeStage) -> set[str]:
    return {(record.header("penstock-id") or b"").decode() for record in stage.stored("purchases")}


def test_events_that_fit_one_by_one_are_stored_although_they_exceed_a_batch_together(stage: EdgeStage) -> None:
    """librdkafka puts events of a partition into one batch, and does not split one that the queue refuses."""
    events = [event(f"fits-{number}", number % 1_500) for number in range(500)]
    answer = stage.post("/ingest/purchases", events)
    assert answer.status == 202, answer
    assert {each["id"] for each in events} <= stored_ids(stage)


def pad_to(size: int, id: str) -> dict[str, Any]:
    """An event whose batch has this size."""
    found = event(id, 0)
    key = found["card"].encode()
    while (missing := size - event_batch_size(json.dumps(found).encode(), key, id, None)) > 0:
        found["pad"] += "x" * max(1, missing - 4)
    return found


def test_an_array_with_an_event_that_the_topic_does_not_take_is_refused_whole(stage: EdgeStage) -> None:
    """413 names the event and the limit, before anything is sent; the last event that fits is stored."""
    events = [event(f"whole-{number}", 100, str(number)) for number in range(7)]
    events[4] = pad_to(LIMIT + 1, "whole-4")
    answer = stage.post("/ingest/purchases", events)
    assert (answer.status, answer.json["event"]) == (413, 4)
    assert f"takes {LIMIT} (max.message.bytes)" in answer.json["error"]
    assert f"needs {LIMIT + 1} bytes" in answer.json["error"]
    assert not stored_ids(stage)
    assert stage.metric('refused_total{reason="event"}') == 1
    events[4] = pad_to(LIMIT, "whole-4")
    assert stage.post("/ingest/purchases", events).status == 202
    assert len(stored_ids(stage)) == 7
    assert stage.post("/ingest/purchases?wait=decide", pad_to(LIMIT + 1, "alone")).status == 413


def test_a_line_that_the_topic_does_not_take_is_a_bad_line(stage: EdgeStage) -> None:
    lines = [
        event("before", 10),
        pad_to(LIMIT + 1, "large"),
        event("between", 10),
        event("huge", 50_000),
        event("x", 9),
    ]
    body = b"\n".join(json.dumps(line).encode() for line in lines)
    answer = stage.post("/ingest/purchases", body, Content_Type=NDJSON)
    assert (answer.status, answer.json["accepted"], answer.json["refused"]) == (207, 3, 2)
    assert [(fault["line"], fault["retry"]) for fault in answer.json["faults"]] == [(2, False), (4, False)]
    assert all("max.message.bytes" in fault["error"] for fault in answer.json["faults"])
    assert stored_ids(stage) == {"before", "between", "x"}
    only = stage.post("/ingest/purchases", json.dumps(lines[3]).encode(), Content_Type=NDJSON)
    assert (only.status, only.json["refused"]) == (413, 1)


def test_the_attributes_of_a_cloud_event_count(stage: EdgeStage) -> None:
    """They become headers of the record."""
    small = {"specversion": "1.0", "id": "ce", "source": "s", "type": "t", "data": {"id": "ce-1"}}
    kind = "application/cloudevents-batch+json"
    large = small | {"subject": "x" * LIMIT}
    answer = stage.post("/ingest/purchases", [small, large], Content_Type=kind)
    assert (answer.status, answer.json["event"]) == (413, 1)
    headers = {"ce_specversion": "1.0", "ce_id": "ce", "ce_source": "s", "ce_type": "t"}
    assert stage.post("/ingest/purchases", {"id": "ce-2"}, **headers, ce_subject="x" * LIMIT).status == 413
    assert stage.post("/ingest/purchases", [small], Content_Type=kind).status == 202
    assert stored_ids(stage) == {"ce-1"}


def test_a_limit_that_was_lowered_is_learned_from_the_first_refusal(stage: EdgeStage) -> None:
    """What the queue stored of the array is told; then the array is refused before anything is sent."""
    first, other = cards_of_two_partitions(stage)
    stage.alter("purchases", "max.message.bytes", "1000")
    events = [event("lower-0", 1_200, first), event("lower-1", 100, other)]
    answer = stage.post("/ingest/purchases", events)
    assert answer.status == 413
    assert "retry-after" not in answer.headers
    assert (answer.json["stored"], answer.json["unknown"]) == (["lower-1"], ["lower-0"])
    (fault,) = answer.json["faults"]
    assert (fault["event"], fault["id"], fault["retry"]) == (0, "lower-0", False)
    assert "takes 1000 (max.message.bytes)" in fault["error"]
    again = stage.post("/ingest/purchases", [event("lower-2", 100), event("lower-3", 1_200)])
    assert (again.status, again.json["event"]) == (413, 1)
    assert stage.metric('refused_total{reason="queue"}') == 1
    assert "lower-2" not in stored_ids(stage)


def test_a_batch_that_was_refused_for_others_passes_with_the_next_try(stage: EdgeStage) -> None:
    """Events fit one by one, and not together: 503 says that a retry helps them, and it does."""
    first, other = cards_of_two_partitions(stage)
    stage.alter("purchases", "max.message.bytes", "1000")
    events = [event("mixed-0", 1_200, first), *[event(f"mixed-{number}", 400, other) for number in range(1, 60)]]
    answer = stage.post("/ingest/purchases", events)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    faults = answer.json["faults"]
    assert [fault["event"] for fault in faults if not fault["retry"]] == [0]
    assert len(faults) > 1
    assert answer.json["unknown"] == [fault["id"] for fault in faults]
    assert stage.metric('refused_total{reason="queue"}') == 1
    assert stage.metric('events_unstored_total{topic="purchases"}') == len(faults) - 1
    retried = [events[fault["event"]] for fault in faults if fault["retry"]]
    assert stage.post("/ingest/purchases", retried).status == 202
    assert {each["id"] for each in events[1:]} <= stored_ids(stage)


def test_a_limit_that_was_raised_is_learned_after_a_refusal(stage: EdgeStage) -> None:
    large = event("raised", 5_000)
    assert stage.post("/ingest/purchases", large).status == 413
    stage.alter("purchases", "max.message.bytes", "10000")
    deadline = time.monotonic() + DEADLINE_S
    while (answer := stage.post("/ingest/purchases", large)).status != 202:
        assert answer.status == 413
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_refusal_makes_the_edge_ask_for_the_limit(stage: EdgeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next regular request to the queue is a day away, so that only a refusal can start one."""
    monkeypatch.setattr("penstock.client.topic_limits.EVERY_S", 86_400)
    app = App("shop")
    app.ingest(Http(), into=app.topic("purchases", schema="id STRING"))
    plan = plan_app(app, Queue())
    nothing: Any = None

    async def run() -> None:
        failed: list[BaseException] = []
        limits = TopicLimits(KafkaTarget.parse(stage.queue), ["purchases"], failed.append)
        collector = Intake(plan, EdgeConfig(), nothing, limits)
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not await limits.refresh():
                    pass
                await limits.start()
                await asyncio.to_thread(stage.alter, "purchases", "max.message.bytes", "10000")
                learned = asyncio.Event()
                limits.on_limit(lambda topic, bytes_max: learned.set())
                assert collector.oversized("purchases", [Event(b"x" * 5_000, None, "raised")])
                await learned.wait()
            assert limits.bytes_max("purchases") == 10_000
            assert failed == []
        finally:
            await limits.close()

    asyncio.run(run())


def test_an_event_beyond_the_default_of_librdkafka_is_stored_where_the_topic_takes_it(tmp_path: Path) -> None:
    """message.max.bytes of librdkafka follows the topic; its default is 1 MB."""
    stage = EdgeStage(tmp_path, event_bytes_max=2_000_000)
    try:
        large = event("large", 1_500_000)
        assert stage.post("/ingest/purchases", large).status == 413
        stage.alter("purchases", "max.message.bytes", "3000000")
        stage.end_edge()
        stage.start_edge()
        assert stage.post("/ingest/purchases", [large, event("larger", 1_900_000)]).status == 202
        assert stored_ids(stage) == {"large", "larger"}
    finally:
        stage.close()


def cards_of_two_partitions(stage: EdgeStage) -> tuple[str, str]:
    """Keys of different partitions of `purchases`."""
    sent = [event(f"card-{card}", 0, str(card)) for card in range(20)]
    assert stage.post("/ingest/purchases", sent).status == 202
    places = {record.key: record.partition for record in stage.stored("purchases")}
    other = next(key for key, partition in places.items() if partition != places[b"0"])
    return "0", (other or b"").decode()
