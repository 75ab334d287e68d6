"""penstock.testing: a query over lists of rows gives what a run gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App
from penstock.errors import ConfigError
from penstock.testing import Event, QueryFailedError, QueryTest, end_shared_spark, shared_spark

sys.path.insert(0, str(Path(__file__).parent / "apps"))

from spending import spending

NINE = datetime(2026, 11, 19, 9, tzinfo=UTC)
Row = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def _own_spark() -> Iterator[None]:
    """Other tests of this process start a Spark of another kind."""
    yield
    end_shared_spark()


def at(minute: float, id: str = "a", card: str = "4711", amount: float = 1.0) -> Row:
    return {"id": id, "card": card, "amount": amount, "at": NINE + timedelta(minutes=minute)}


def spent(hour: int, spent: float, card: str = "4711") -> Row:
    return {"card": card, "hour": f"2026-11-19T{hour:02}:00:00.000000Z", "spent": spent}


SPENT = QueryTest(spending, "spent_per_hour")
BIG = QueryTest(spending, "big")


def test_a_batch_has_the_row_of_each_key_in_the_order_of_the_keys() -> None:
    rows = [at(61), at(0, card="2"), at(5), at(6, amount=2)]
    assert SPENT.batch(purchases=rows) == [spent(9, 1.0, card="2"), spent(9, 3.0), spent(10, 1.0)]
    assert SPENT.batch() == SPENT.batch(purchases=[]) == []


def test_a_sql_query_is_tested_like_a_function() -> None:
    rows = [at(0, "b", amount=900), at(1, "a", amount=500), at(2, "a", amount=501)]
    big = [{"id": "b", "amount": 900.0}, {"id": "a", "amount": 501.0}]
    assert BIG.batch(purchases=rows) == big
    run = BIG.stream(purchases=[rows[:2], rows[2:]])
    assert run.pieces == [[big[0]], [big[1]]]
    assert run.rows == big


def test_a_stream_writes_each_change_and_keeps_state_between_pieces() -> None:
    run = SPENT.stream(purchases=[[at(0), at(1)], [], [at(2), at(61)]])
    assert [sorted(piece, key=str) for piece in run.pieces] == [[spent(9, 2.0)], [], [spent(9, 3.0), spent(10, 1.0)]]
    assert run.table == [spent(9, 3.0), spent(10, 1.0)]
    assert [result.key for result in run.written[0]] == ["4711|2026-11-19T09:00:00.000000Z"]
    assert run.written[0][0].headers == {
        "penstock-query": "spent_per_hour",
        "penstock-kind": "upsert",
        "penstock-key-columns": "card,hour",
    }
    assert (run.late, run.dead) == (0, [])


def test_late_events_are_counted_and_in_no_result() -> None:
    run = SPENT.stream(purchases=[[at(0)], [at(75)], [at(2), at(3, card="2"), at(61)]])
    assert run.late == 2
    assert run.table == [spent(9, 1.0), spent(10, 2.0)]
    # The watermark moves between pieces: within one, nothing is late.
    run = SPENT.stream(purchases=[[at(0), at(75), at(2)]])
    assert run.late == 0
    assert run.table == [spent(9, 2.0), spent(10, 1.0)]


def test_each_run_begins_without_state() -> None:
    once = QueryTest(spending, "once")
    for _ in range(2):
        run = once.stream(purchases=[[at(0, "a"), at(0, "a")], [at(5, "a"), at(5, "b")]])
        assert run.pieces == [[{"id": "a"}], [{"id": "b"}]]


def test_a_query_of_two_topics_gets_their_pieces_together() -> None:
    returned = QueryTest(spending, "returned")
    purchases = [[at(0, "a"), at(1, "b")], [], [at(300, "c")], [at(300, "d")]]
    refunds = [[], [{"purchase": "b", "at": NINE + timedelta(minutes=9)}], [], [{"purchase": "d", "at": at(301)["at"]}]]
    run = returned.stream(purchases=purchases, refunds=refunds)
    assert run.pieces == [[], [{"id": "b", "card": "4711"}], [], [{"id": "d", "card": "4711"}]]
    at_once = returned.batch(purchases=list(chain(*purchases)), refunds=list(chain(*refunds)))
    assert sorted(at_once, key=str) == sorted(run.rows, key=str)


def test_events_that_do_not_parse_reach_no_query_and_are_told() -> None:
    ahead = Event(at(0, "early"), time=NINE - timedelta(hours=2))
    run = BIG.stream(purchases=[[b"{", at(0, amount=501)], [b'{"id": "x"}', ahead]])
    assert run.rows == [{"id": "a", "amount": 501.0}]
    assert [(dead.topic, dead.reason) for dead in run.dead] == [
        ("purchases", "not JSON: Input data was truncated"),
        ("purchases", "field card is missing"),
        ("purchases", "field at: more than an hour in the future"),
    ]
    assert run.dead[0].value == b"{"


def test_what_stands_beside_an_event_can_be_given_and_is_the_same_in_each_run() -> None:
    events = [
        at(5),
        at(3),
        Event(
            at(4), id="mine", partition=1, time=NINE, headers={"penstock-producer": "till", "penstock-sequence": "7"}
        ),
        Event(at(6), partition=1),
    ]
    headed = QueryTest(spending, "headed")
    rows = headed.batch(purchases=events)
    assert [row["second"] for row in rows] == [None, None, "penstock-producer", None]
    assert rows == headed.stream(purchases=[events]).rows
    five, six = ("2026-11-19T09:05:00.000000Z", "2026-11-19T09:06:00.000000Z")
    seen = [(row["id"], row["producer"], row["sequence"], row["partition"], row["offset"], row["time"]) for row in rows]
    assert seen == [
        ("purchases/0/0", None, None, 0, 0, five),
        ("purchases/0/1", None, None, 0, 1, five),  # no event is accepted before the event that came before it
        ("mine", "till", 7, 1, 0, "2026-11-19T09:00:00.000000Z"),
        ("purchases/1/1", None, None, 1, 1, six),
    ]


def test_a_python_function_runs_and_its_error_names_the_line() -> None:
    share = QueryTest(spending, "share")
    assert share.batch(purchases=[at(0, amount=4)]) == [{"id": "a", "share": 0.25}]
    for run in (lambda rows: share.batch(purchases=rows), lambda rows: share.stream(purchases=[rows])):
        with pytest.raises(QueryFailedError, match=r"query share: ZeroDivisionError: .* \(spending.py, line \d+, in"):
            run([at(0, amount=0)])


def test_what_spark_refuses_in_a_run_is_refused_in_a_batch_too() -> None:
    for run in (QueryTest(spending, "refused").batch, QueryTest(spending, "refused").stream):
        with pytest.raises(ConfigError, match=r"query refused: .*[Ss]orting is not supported"):
            run()


def test_a_wrong_name_or_row_is_told_with_what_to_do() -> None:
    """Before Spark is asked anything."""

    def said(test: QueryTest, *rows: Any) -> str:
        with pytest.raises(ConfigError) as wrong:
            test.stream(purchases=[rows])
        return str(wrong.value)

    way_out = "correct it, or give the event as bytes to test what becomes of it"
    assert said(BIG, at(0), at(0) | {"amount": "1"}) == (
        f"purchases, piece 1, row 2: field amount: expected number | null, got string: {way_out}"
    )
    assert said(BIG, {"id": "a"}) == f"purchases, piece 1, row 1: field card is missing: {way_out}"
    assert said(BIG, at(0) | {"amuont": 1}) == (
        f"purchases, piece 1, row 1: topic purchases has no column amuont, did you mean amount?: {way_out}"
    )
    assert said(BIG, 7) == "purchases, piece 1, row 1 is a int: an event is a dict, an Event or bytes"
    with pytest.raises(ConfigError, match=r"purchases, piece 1 is a dict, not a list of events: batch takes"):
        BIG.stream(purchases=[at(0)])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"purchases is a dict, not a list of events: batch takes"):
        BIG.batch(purchases=at(0))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="query big does not read refunds: it reads purchases"):
        BIG.batch(refunds=[])
    with pytest.raises(ConfigError, match=r"app spending has no query bigg, did you mean big\?"):
        QueryTest(spending, "bigg")
    with pytest.raises(ConfigError, match="query big has no table: its rows replace no others"):
        _ = BIG.stream().table
    broken = App("broken")
    broken.sql("none", "SELECT 1")
    with pytest.raises(ConfigError, match=r"query none: the SQL text names no STREAM\(topic\)"):
        QueryTest(broken, "none")


EVENTS = [at(minute, card=card, amount=float(minute)) for minute in (1, 12, 25, 58, 62, 69) for card in ("1", "2")]


@settings(max_examples=5, deadline=None, derandomize=True)
@given(SPENT.arrivals(purchases=EVENTS))
def test_any_order_of_arrival_within_the_watermark_gives_the_same_answer(pieces: dict[str, Any]) -> None:
    run = SPENT.stream(**pieces)
    assert run.late == 0
    assert run.table == SPENT.batch(purchases=EVENTS)


@given(SPENT.arrivals(purchases=EVENTS, pieces_max=5))
def test_arrivals_keep_every_event_and_make_none_late(pieces: dict[str, list[list[Row]]]) -> None:
    of_topic = pieces["purchases"]
    assert sorted((row for piece in of_topic for row in piece), key=str) == sorted(EVENTS, key=str)
    assert len(of_topic) <= 5
    newest = NINE - timedelta(days=1)
    for piece in of_topic:
        assert all(row["at"] > newest - timedelta(minutes=10) for row in piece)
        newest = max([newest, *(row["at"] for row in piece)])


def test_arrivals_are_in_another_order_and_in_several_pieces() -> None:
    def is_mixed(pieces: dict[str, list[list[Row]]]) -> bool:
        times = [row["at"] for piece in pieces["purchases"] for row in piece]
        return times != sorted(times) and all(pieces["purchases"]) and len(pieces["purchases"]) == 4

    assert find(SPENT.arrivals(purchases=EVENTS), is_mixed)
    assert find(BIG.arrivals(purchases=EVENTS), lambda pieces: pieces["purchases"][0][:1] == EVENTS[-1:])
    again = find(
        SPENT.arrivals(purchases=EVENTS, repeats=True), lambda pieces: sum(map(len, pieces["purchases"])) > len(EVENTS)
    )
    assert all(row in EVENTS for row in again["purchases"][0])


def find(strategy: st.SearchStrategy[dict[str, Any]], condition: Any) -> dict[str, Any]:
    from hypothesis import find

    found: dict[str, Any] = find(strategy, condition, settings=settings(database=None, max_examples=2_000))
    return found


def test_a_session_of_the_user_serves_too() -> None:
    own = shared_spark().newSession()
    own.conf.set("spark.sql.session.timeZone", "America/New_York")
    test = QueryTest(spending, "spent_per_hour", spark=own)
    assert test.batch(purchases=[at(0)]) == [spent(9, 1.0)]  # with the settings of a run


def test_a_decimal_is_a_number_to_the_query() -> None:
    priced = App("priced")
    priced.topic("prices", schema="id STRING, price DECIMAL(10, 2)")
    priced.sql("doubled", "SELECT id, price * 2 AS price, _event FROM STREAM(prices)")
    rows = QueryTest(priced, "doubled").batch(prices=[{"id": "a", "price": Decimal("0.10")}])
    assert rows == [{"id": "a", "price": 0.2}]
