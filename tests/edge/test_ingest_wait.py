"""?wait= on a real edge and a real broker; the query is stood in for by a real consumer and producer."""

from __future__ import annotations

import concurrent.futures
import json
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.edge.edge_stage import Answer, EdgeStage, Query


@pytest.fixture(scope="module")
def decide(shop: EdgeStage) -> Iterator[Query]:
    query = Query(shop.broker.address, "decide", "purchases", "decisions")
    yield query
    query.close()


def test_the_request_is_answered_with_the_result_of_its_own_event(shop: EdgeStage, decide: Query) -> None:
    """Many wait at once, each hears of its own."""

    def ask(number: int) -> Answer:
        event = {"id": f"mine-{number}", "card": str(number % 3)}
        return shop.post("/ingest/purchases?wait=decide", event)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(100)))
    for number, answer in enumerate(answers):
        assert answer.status == 200
        assert answer.json["result"] == {"id": f"mine-{number}", "decision": "approved", "by": "decide"}
        assert answer.json["id"] == f"mine-{number}"
    assert shop.metric('waits_total{outcome="result"}') >= 100
    assert shop.metric("waiting") == 0


def test_an_event_that_the_query_drops_has_no_result_and_says_so(shop: EdgeStage, decide: Query) -> None:
    decide.drops.add("dropped-1")
    answer = shop.post("/ingest/purchases?wait=decide", {"id": "dropped-1", "card": "1"})
    assert answer.status == 200
    assert answer.json["result"] is None
    assert "query decide has passed this event" in answer.json["reason"]
    assert "the event came too late (the watermark is 2 hours)" in answer.json["reason"]


def test_the_progress_of_another_app_answers_nothing(shop: EdgeStage) -> None:
    """A query of the same name in another app reads the same topic, and is far ahead."""
    with Producer({"bootstrap.servers": shop.broker.address}) as other:
        positions = {"purchases": {"0": 1_000_000, "1": 1_000_000}}
        said = {"app": "desk", "query": "count_stars", "state": "running", "keeps_event": False, "at_ms": 1}
        notes = said | {"positions": {"notes": {"0": 1_000_000, "1": 1_000_000}}}
        for report in (said | {"positions": positions}, notes):
            other.produce("penstock.queries", json.dumps(report).encode())
        assert other.flush(60) == 0
    answer = shop.post("/ingest/shop/notes?wait=count_stars&timeout_ms=1500", {"text": "x"}, Penstock_Id="other-app")
    assert answer.status == 202, answer


def test_a_parked_query_is_not_waited_for(shop: EdgeStage) -> None:
    """The event is stored, and the answer says at once why there is no result yet."""
    deadline = time.monotonic() + 60
    path = "/ingest/shop/notes?wait=count_stars&timeout_ms=30000"
    with Producer({"bootstrap.servers": shop.broker.address}) as analyze:

        def report(state: str, reason: str | None) -> None:
            said = {"app": "shop", "query": "count_stars", "state": state, "reason": reason, "at_ms": 1}
            analyze.produce("penstock.queries", json.dumps(said).encode())
            assert analyze.flush(60) == 0

        report("parked", "ZeroDivisionError: division by zero")
        # The report may still be on its way: then a short wait ends without it.
        while "parked" not in (answer := shop.post(path.replace("30000", "50"), {"text": "x"})).json["reason"]:
            assert time.monotonic() < deadline, answer
        answer = shop.post(path, {"text": "x"})
        assert answer.status == 202
        assert "query count_stars is parked: ZeroDivisionError: division by zero" in answer.json["reason"]
        report("running", None)
        while "parked" in shop.post(path.replace("30000", "50"), {"text": "x"}).json["reason"]:
            assert time.monotonic() < deadline


def test_behind_a_transaction_an_event_that_is_dropped_is_told_too(shop: EdgeStage) -> None:
    """The end of a transaction takes an offset that no reader is given: what was read ends behind it."""
    query = Query(shop.broker.address, "count_stars", "notes", "stars", is_exactly_once=True)
    try:
        answer = shop.post("/ingest/shop/notes?wait=count_stars", {"text": "kept"}, Penstock_Id="kept")
        assert answer.json["result"]["by"] == "count_stars"
        query.drops.add("gone")
        answer = shop.post("/ingest/shop/notes?wait=count_stars", {"text": "gone"}, Penstock_Id="gone")
        assert (answer.status, answer.json["result"]) == (200, None)
    finally:
        query.close()


def test_a_query_whose_results_are_nameless_is_not_waited_for(shop: EdgeStage) -> None:
    """Nobody could tell whose result it is: said at once, with what to do, as soon as the query has reported."""
    judge = Query(shop.broker.address, "judge", "decisions", "verdicts", keeps_event=False)
    try:
        deadline = time.monotonic() + 60
        path = "/ingest/purchases?wait=judge&timeout_ms=100"
        while (answer := shop.post(path, {"id": "nameless", "card": "1"})).status != 400:
            assert time.monotonic() < deadline, answer
        assert "add _event to what the query selects" in answer.json["error"]
    finally:
        judge.close(keeps_event=True)
    while shop.post(path, {"id": "nameless", "card": "1"}).status == 400:
        assert time.monotonic() < deadline, "the edge reads the last report of the query"


def test_results_of_a_query_behind_another_are_waited_for_too(shop: EdgeStage, decide: Query) -> None:
    """Filtered by the second query, or by the first: each is told by the one that did it."""
    judge = Query(shop.broker.address, "judge", "decisions", "verdicts", 2)
    try:
        answer = shop.post("/ingest/purchases?wait=judge", {"id": "chain-1", "card": "1"})
        assert answer.json["result"]["by"] == "judge"
        judge.drops.add("chain-2")
        answer = shop.post("/ingest/purchases?wait=judge", {"id": "chain-2", "card": "1"})
        assert answer.json["result"] is None
        assert "judge" in answer.json["reason"]
        decide.drops.add("chain-3")
        answer = shop.post("/ingest/purchases?wait=judge", {"id": "chain-3", "card": "1"})
        assert answer.json["result"] is None
        assert "decide" in answer.json["reason"]
    finally:
        judge.close()


def test_a_time_out_says_where_to_ask_and_asking_there_answers(shop: EdgeStage) -> None:
    """The event is stored; its result comes when the query runs, remembered or looked for in the topic."""
    began = time.monotonic()
    answer = shop.post("/ingest/shop/notes?wait=count_stars&timeout_ms=200", {"text": "slow"}, Penstock_Id="no/te 1")
    assert answer.status == 202
    assert answer.json["ids"] == ["no/te 1"]
    assert time.monotonic() - began < 30
    where = answer.headers["location"]
    assert where.startswith("/results/count_stars/no%2Fte%201?since=")
    assert shop.get(where).status == 404
    query = Query(shop.broker.address, "count_stars", "notes", "stars")
    try:
        while (found := shop.get(where)).status == 404:
            assert time.monotonic() - began < 60
        assert found.json["result"]["by"] == "count_stars"
        while shop.get(where.partition("?")[0]).status == 404:
            assert time.monotonic() - began < 60, "not remembered: without since nobody looks into the topic"
        shop.end_edge()
        shop.start_edge()
        assert shop.get(where.partition("?")[0]).status == 404, "forgotten with the edge"
        assert shop.get(where).json["result"]["by"] == "count_stars", "found in the topic"
    finally:
        query.close()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/ingest/purchases?wait=nothing", "wait for one of decide, judge"),
        ("/ingest/purchases?wait=count_stars", "wait for one of decide, judge"),
        ("/ingest/fleeting?wait=decide", "no query reads this topic"),
        ("/ingest/purchases?wait=decide&timeout_ms=0", "timeout_ms"),
        ("/ingest/purchases?wait=decide&timeout_ms=99999999", "timeout_ms"),
        ("/ingest/purchases?wait=decide&timeout_ms=soon", "timeout_ms"),
        ("/ingest/purchases?wiat=decide", "unknown parameter 'wiat': known are wait, timeout_ms"),
    ],
)
def test_what_cannot_be_waited_for_is_refused_before_anything_is_stored(shop: EdgeStage, path: str, says: str) -> None:
    answer = shop.post(path, {"id": "refused-wait", "n": 1})
    assert answer.status == 400
    assert says in answer.json["error"]
    ids = {record.header("penstock-id") for record in shop.stored("purchases")}
    assert b"refused-wait" not in ids


def test_only_one_event_can_wait(shop: EdgeStage) -> None:
    several = [{"id": "two-1"}, {"id": "two-2"}]
    assert shop.post("/ingest/purchases?wait=decide", several).status == 400
    lines = shop.post("/ingest/purchases?wait=decide", b'{"id":"two-3"}\n', Content_Type="application/x-ndjson")
    assert lines.status == 400


def test_results_of_an_unknown_query_are_not_looked_for(shop: EdgeStage) -> None:
    answer = shop.get("/results/nothing/x")
    assert answer.status == 404
    assert "decide" in answer.json["known"]
    assert shop.get("/results/decide/x?since=soon").status == 400
    assert shop.ask("POST", "/results/decide/x", {}).status == 405
