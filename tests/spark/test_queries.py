"""One Spark runs every kind of query at once, each as it is promised."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from driving.analyze import Analyze
from driving.records import Record, read, reading, send, stored

from penstock.drills.broker_process import BrokerProcess

NOW = datetime.now(UTC)
AT = NOW.isoformat()


@pytest.fixture(scope="module")
def shop(broker: BrokerProcess, folder: Path) -> Iterator[Analyze]:
    with Analyze("shop.py", broker.address, folder / "data", restarts_max=1) as running:
        yield running


def purchase(number: int, **fields: object) -> dict[str, object]:
    return {
        "id": f"p{number}",
        "card": f"card-{number % 3}",
        "amount": 400.0 * number,
        "country": "DE",
        "at": AT,
    } | fields


def status_of(broker: BrokerProcess, query: str, state: str) -> dict[str, object]:
    """The first status of a query in a state."""

    def wanted(record: Record) -> bool:
        return record.json["query"] == query and record.json["state"] == state

    return next(filter(wanted, read(broker.address, "penstock.queries", lambda found: any(map(wanted, found))))).json


def test_each_event_has_a_result_that_says_whose_it_is(shop: Analyze, broker: BrokerProcess) -> None:
    """Real time, one to one: id and time of the event, where it stood, which query; nulls are kept."""
    send(broker.address, "purchases", [purchase(number) for number in range(4)])
    results = {r.headers["penstock-id"]: r for r in read(broker.address, "decisions", lambda r: len(r) >= 4)}
    assert {id: r.json["decision"] for id, r in results.items()} == {
        "p0": "approved", "p1": "approved", "p2": "approved", "p3": "declined"
    }  # fmt: skip
    one = results["p3"]
    assert one.key == "p3"
    assert one.json == {"id": "p3", "decision": "declined", "note": None}
    assert one.headers["penstock-query"] == "decide"
    assert one.headers["penstock-source"].startswith("purchases/")
    assert int(one.headers["penstock-time"]) > 1_700_000_000_000


def test_an_event_of_a_plain_producer_is_known_by_where_it_stands(shop: Analyze, broker: BrokerProcess) -> None:
    send(broker.address, "purchases", [purchase(100)], id=None)
    results = read(broker.address, "decisions", lambda found: any(r.json["id"] == "p100" for r in found))
    (mine,) = [r for r in results if r.json["id"] == "p100"]
    assert mine.headers["penstock-id"] == mine.headers["penstock-source"]


def test_an_aggregate_answers_every_event_in_real_time(shop: Analyze, broker: BrokerProcess) -> None:
    """The sum per card, with the event that made it."""
    send(broker.address, "purchases", [purchase(n, id=f"a{n}", card="mine", amount=10.0) for n in range(20)])

    def mine(found: list[Record]) -> list[Record]:
        return [r for r in found if r.json["card"] == "mine"]

    results = mine(read(broker.address, "spend", lambda found: len(mine(found)) >= 20))
    assert [r.json["spent"] for r in results] == [10.0 * (n + 1) for n in range(20)]
    assert [r.headers["penstock-id"] for r in results] == [f"a{n}" for n in range(20)]
    assert "query spend: running, realtime" in shop.lines


def test_sql_reads_a_stream(shop: Analyze, broker: BrokerProcess) -> None:
    send(broker.address, "purchases", [purchase(0, id="small", amount=1.0), purchase(0, id="large", amount=999.5)])
    results = read(broker.address, "big", lambda found: any(r.json["id"] == "large" for r in found))
    assert not [r for r in results if r.json["id"] == "small"]


def test_what_spark_cannot_do_in_real_time_runs_in_micro_batches_and_says_why(
    shop: Analyze, broker: BrokerProcess
) -> None:
    assert "query returned: running, microbatch (stream-stream join: not in Real-Time Mode)" in shop.lines
    send(broker.address, "purchases", [purchase(0, id="bought")])
    send(broker.address, "refunds", [{"id": "r1", "purchase": "bought", "at": AT}])
    results = read(broker.address, "returned", lambda found: len(found) >= 1)
    assert results[0].json == {"purchase": "bought", "card": "card-0"}
    assert results[0].headers["penstock-id"] == "r1"


def test_what_does_not_parse_is_a_dead_letter_with_its_reason(shop: Analyze, broker: BrokerProcess) -> None:
    """Raw bytes, where it stood, whose it was; it stops nothing and reaches no query."""
    ahead = json.dumps({"id": "ahead", "at": (NOW + timedelta(hours=3)).isoformat()}).encode()
    bad = [ahead, b"{not json", json.dumps({"card": "x"}).encode(), b'{"id": "w", "amount": "much"}', b"\xff\xfe", None]
    send(broker.address, "purchases", [*bad, purchase(0, id="after")])
    send(broker.address, "purchases", [{"id": 7, "amount": "x"}])
    letters = read(broker.address, "purchases.dead", lambda found: len(found) >= len(bad) + 1)
    reasons = {letter.value: letter.headers["penstock-reason"] for letter in letters}
    assert reasons[b'{"card": "x"}'] == "field id is missing"
    assert reasons[b'{"id": "w", "amount": "much"}'].startswith("field amount")
    assert reasons[b"{not json"].startswith("not JSON")
    assert reasons[ahead] == "field at: more than an hour in the future"
    assert None in reasons
    assert b"\xff\xfe" in reasons
    assert all(letter.headers["penstock-source"].startswith("purchases/") for letter in letters)
    assert [letter.headers["penstock-id"] for letter in letters if "penstock-id" in letter.headers] == ["7"]
    results = read(broker.address, "decisions", lambda found: any(r.json["id"] == "after" for r in found))
    assert not [r for r in results if r.json["id"] in ("w", "ahead")]


def test_a_query_that_fails_is_parked_with_the_reason_while_others_go_on(shop: Analyze, broker: BrokerProcess) -> None:
    send(broker.address, "purchases", [purchase(0, id="poison", card="no number")])
    parked = status_of(broker, "fails", "parked")
    assert "failed 2 times" in str(parked["reason"])
    assert "CAST_INVALID_INPUT" in str(parked["reason"])
    send(broker.address, "purchases", [purchase(0, id="still")])
    read(broker.address, "decisions", lambda found: any(r.json["id"] == "still" for r in found))


def test_a_broker_that_goes_and_comes_back_is_waited_for(shop: Analyze, broker: BrokerProcess) -> None:
    """Waiting while it is away; then everything goes on by itself, and nothing is lost."""
    broker.kill()
    shop.wait_for_line(lambda line: line.startswith("query decide: waiting"))
    broker.start()
    shop.wait_for_line(lambda line: line == "query decide: running")
    send(broker.address, "purchases", [purchase(0, id="afterwards")])
    read(broker.address, "decisions", lambda found: any(r.json["id"] == "afterwards" for r in found))
    read(broker.address, "returned", lambda found: len(found) >= 1)


def test_dead_letters_are_told_of_before_anybody_looks_for_them(shop: Analyze, broker: BrokerProcess) -> None:
    """They begin after the queries: until then nobody must take them for lost."""
    told = read(
        broker.address, "penstock.queries", lambda found: any(r.json["query"] == "purchases.dead" for r in found)
    )
    first = next(r.json for r in told if r.json["query"] == "purchases.dead")
    assert first["state"] == "starting"
    assert first["reason"] == "it begins when the queries have little before them"


def test_positions_tell_what_is_committed(shop: Analyze, broker: BrokerProcess) -> None:
    """Every status names its query; once one has committed everything, nothing lags."""
    there = stored(broker.address, "purchases")
    with reading(broker.address, "penstock.queries") as reader:

        def caught_up(found: list[Record]) -> bool:
            mine = [r.json for r in found if r.json["query"] == "decide"]
            return (
                bool(mine)
                and sum(mine[-1]["positions"].get("purchases", {}).values()) == there
                and mine[-1]["lag"] == 0
            )

        status = [r.json for r in reader.until(caught_up) if r.json["query"] == "decide"][-1]
    assert set(status["positions"]) == {"purchases"}
    assert set(status["positions"]["purchases"]) == {"0", "1"}
    assert status["rows_in"] > 0
    assert status["checkpoint_ms"] > 0


def test_a_real_time_query_lags_by_what_has_no_result_yet(shop: Analyze, broker: BrokerProcess) -> None:
    """It commits twice a minute: what it has answered since is not before it any more."""
    with reading(broker.address, "penstock.queries") as reader, reading(broker.address, "decisions") as results:

        def reports(found: list[Record], since_ms: int) -> list[dict[str, Any]]:
            return [r.json for r in found if r.json["query"] == "decide" and r.json["at_ms"] > since_ms]

        for number in itertools.count():
            sent = [purchase(n, id=f"lag-{number}-{n}", card=f"card-{n}") for n in range(6)]
            send(broker.address, "purchases", sent)
            wanted = {one["id"] for one in sent}
            results.until(lambda found, wanted=wanted: wanted <= {r.json["id"] for r in found})
            later_ms = time.time_ns() // 1_000_000 + 2_000  # each second it looks how much there is
            told = reader.until(lambda found, later_ms=later_ms: bool(reports(found, later_ms)))
            report = reports(told, later_ms)[-1]
            uncommitted = stored(broker.address, "purchases") - sum(report["positions"].get("purchases", {}).values())
            if uncommitted >= len(sent) and report["lag"] == 0:
                return
            assert number < 20, f"{uncommitted} are not committed: {report}"


def test_a_clean_stop_is_quick_and_leaves_nobody_behind(shop: Analyze) -> None:
    children = shop.children
    assert children
    assert shop.stop() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
