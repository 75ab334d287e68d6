"""GET /queries.json: how every query is, for the page."""

from __future__ import annotations

import time
from typing import Any

import pytest

from penstock import App
from penstock.edge.query_states import query_rows
from penstock.events.query_status import SILENT_AFTER_MS, QueryStatus
from penstock.guarantee import Queue
from penstock.plan.planner import plan_app
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
    ("said_state", "age_ms", "state"),
    [
        ("waiting", 0, "waiting"),
        ("waiting", SILENT_AFTER_MS, "waiting"),
        ("waiting", SILENT_AFTER_MS + 1, "silent"),
        ("stopped", SILENT_AFTER_MS + 1, "stopped"),
    ],
)
def test_a_query_that_has_not_spoken_for_long_is_silent(said_state: str, age_ms: int, state: str) -> None:
    """A query is silent when its last report is older than ten seconds. A stopped query stays stopped."""
    app = App("a")
    app.topic("t", schema="id STRING")
    app.query(reads="t", writes="u", name="q")(lambda t: t)
    said = QueryStatus(app="a", query="q", at_ms=1_000_000, state=said_state, mode="realtime", lag=3)
    (row,) = query_rows(plan_app(app, Queue()), {"q": said}, 1_000_000 + age_ms)
    assert (row["state"], row["mode"], row["lag"]) == (state, "realtime", 3)
