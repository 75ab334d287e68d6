"""A topic of a real queue takes batches up to max.message.bytes: each event that fits is stored, another is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.edge.edge_stage import EdgeStage

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
