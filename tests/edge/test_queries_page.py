"""GET /queries.json: how every query is, for the page."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock import App
from penstock.dashboard.queries import SILENT_AFTER_MS, query_rows
from penstock.guarantee import Queue
from penstock.plan import plan_app
from penstock.query_status import QueryStatus
from tests.edge.edge_stage import DEADLINE_S, EdgeStage, Query


def state_of(shop: EdgeStage, query: str) -> dict[str, Any]:
    answer = shop.get("/queries.json")
    assert answer.status == 200
    return next(row for row in answer.json if row["query"] == query)


def test_the_page_hears_what_a_query_says_of_itself(shop: EdgeStage) -> None:
    assert state_of(shop, "decide")["reason"] == "it has not reported yet"
    query = Query(shop.broker.address, "decide", "purchases", "decisions")
    try:
        deadline = time.monotonic() + DEADLINE_S
        while (row := state_of(shop, "decide"))["state"] != "running":
            assert time.monotonic() < deadline, row
        assert (row["reads"], row["writes"]) == (["purchases"], "decisions")
    finally:
        query.close()


@pytest.mark.parametrize(
    ("age_ms", "state"), [(0, "waiting"), (SILENT_AFTER_MS, "waiting"), (SILENT_AFTER_MS + 1, "silent")]
)
def test_a_query_that_has_not_spoken_for_long_is_silent(age_ms: int, state: str) -> None:
    """What it said last stands for ten seconds."""
    app = App("a")
    app.topic("t", schema="id STRING")
    app.query(reads="t", writes="u", name="q")(lambda t: t)
    said = QueryStatus(app="a", query="q", at_ms=1_000_000, state="waiting", mode="realtime", lag=3)
    (row,) = query_rows(plan_app(app, Queue()), {"q": said}, 1_000_000 + age_ms)
    assert (row["state"], row["mode"], row["lag"]) == (state, "realtime", 3)
