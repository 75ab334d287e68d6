"""An edge beside queries: nothing is taken before they are known to run, and ready means that they do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from penstock.plan.run_spec import CHECKED_FIRST
from tests.edge.edge_stage import DEADLINE_S, EdgeStage

PURCHASE = {"id": "p1", "card": "c", "amount": 1.0, "country": "CH", "at": "2026-01-01T00:00:00Z"}


def wait_for(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_nothing_is_taken_before_the_queries_are_checked(tmp_path: Path) -> None:
    """503 with Retry-After for any event, stored or waited for; the page is there; then 202 at once."""
    stage = EdgeStage(tmp_path, words=[CHECKED_FIRST])
    try:
        for path in ("/ingest/purchases", "/ingest/purchases?wait=decide"):
            answer = stage.post(path, PURCHASE)
            assert answer.status == 503
            assert answer.headers["retry-after"] == "1"
            assert answer.json["error"] == "the app's queries are still being checked: send it again later"
        assert stage.get("/").status == stage.get("/health").status == 200
        assert stage.stored("purchases") == []
        stage.tell_edge()
        wait_for(lambda: stage.post("/ingest/purchases", PURCHASE).status == 202)
        assert stage.metric('refused_total{reason="unchecked"}') >= 2
    finally:
        stage.close()


def test_ready_is_printed_once_ingest_accepts_events(tmp_path: Path) -> None:
    """Programs that wait for the line send their first event then, and must not be refused."""
    stage = EdgeStage(tmp_path, words=[CHECKED_FIRST])
    try:
        assert stage.post("/ingest/purchases", PURCHASE).status == 503
        stage.tell_edge()
        assert stage.next_line() == f"ready {stage.url}\n"
        assert stage.post("/ingest/purchases", PURCHASE).status == 202
    finally:
        stage.close()


def test_it_is_ready_when_every_query_runs(tmp_path: Path) -> None:
    """Whoever sends traffic only to what is ready waits for the queries, by name."""
    stage = EdgeStage(tmp_path, words=[CHECKED_FIRST])
    queries = Producer({"bootstrap.servers": stage.broker.address, "linger.ms": 0, "log_level": 0})

    def reasons_when(**states: str) -> list[str]:
        for query, state in states.items():
            said = {"app": "shop", "query": query, "state": state, "at_ms": time.time_ns() // 1_000_000}
            queries.produce("penstock.queries", json.dumps(said).encode(), query.encode())
        queries.flush(DEADLINE_S)
        return reasons(stage)

    try:
        checking, starting = reasons(stage)
        assert checking == "ingest accepts no events yet: analyze still checks the queries of the app"
        assert starting.startswith("queries have not started yet: decide, judge, count_stars: ")
        stage.tell_edge()
        wait_for(lambda: _is_late(reasons_when(decide="running", judge="starting"), "judge, count_stars"))
        wait_for(lambda: reasons_when(judge="running", count_stars="running") == [])
        assert stage.get("/ready").json == {"status": "ok", "reasons": []}
    finally:
        stage.close()


def _is_late(found: list[str], names: str) -> bool:
    return len(found) == 1 and found[0].startswith(f"queries have not started yet: {names}: ")


def reasons(stage: EdgeStage) -> list[str]:
    """Why the edge is not ready."""
    answer = stage.get("/ready")
    found: list[str] = answer.json["reasons"]
    assert answer.status == (503 if found else 200)
    return found
