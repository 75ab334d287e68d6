"""Why an app's queries do not work, and their metrics, from what they report."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import App
from penstock.edge.operator_routes import READY_KNOWN_S, Readiness, status_of
from penstock.edge.query_metrics import STATES, query_metric_lines
from penstock.edge.query_reasons import query_reasons
from penstock.edge.query_states import Heard
from penstock.events.query_status import Processing, QueryState, QueryStatus
from penstock.guarantee import Queue
from penstock.plan.plan import Plan
from penstock.plan.planner import plan_app

NOW_S = 1_000.0
COMMIT_MS = 30_000  # of a query that is costly
STALLED_AFTER_MS = 60_000


@pytest.fixture
def plan() -> Plan:
    app = App("shop")
    app.topic("in", schema="id STRING")
    app.query(reads="in", writes="a", name="first")(lambda t: t)
    app.query(reads="in", writes="b", name="second", every="10 minutes")(lambda t: t)
    return plan_app(app, Queue())


def said(query: str, state: str = "running", **more: Any) -> dict[str, Heard]:
    age_s = more.pop("age_s", 0.5)
    return {query: Heard(QueryStatus(app="shop", query=query, at_ms=0, state=QueryState(state), **more), NOW_S - age_s)}


FINE = said("first") | said("second") | said("in.dead", "starting", reason="it begins later")


def reasons(plan: Plan, last: dict[str, Heard], master: str = "local") -> list[str]:
    return query_reasons(
        plan, last, NOW_S, stalled_after_ms=STALLED_AFTER_MS, data=Path("/data"), master=master
    )  # fmt: skip


def test_queries_that_run_and_dead_letters_that_wait_are_no_reason(plan: Plan) -> None:
    """Nor is a query without input, or one that does not say whether it has some."""
    assert reasons(plan, FINE) == []
    assert reasons(plan, FINE | said("first", lag=0, stalled_ms=0, slots=9)) == []


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (said("first", "parked", reason="bad cast"), "query first is parked: bad cast: remove the cause, then start"),
        (said("in.dead", "parked", reason="x"), "the query of dead letters in.dead is parked: x: remove the cause"),
        (said("first", "waiting", reason="it needs 5 task slots"), "query first waits: it needs 5 task slots"),
        (
            said("first", lag=7, stalled_ms=STALLED_AFTER_MS + COMMIT_MS + 1),
            "query first has not moved for 90 s, 7 events behind: look at Spark's pages and at /data/analyze/spark.log",
        ),
        (said("first", "starting"), "queries have not started yet: first: wait for Spark, or look at /data/logs/analy"),
        (said("first", slots=0), "Spark has no executors, so no query can run: start the app again, or look at /data/"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_query_that_does_not_work_is_a_reason_that_says_what_to_do(
    plan: Plan, change: dict[str, Heard], wanted: str
) -> None:
    (reason,) = reasons(plan, FINE | change)
    assert reason.startswith(wanted)


def test_a_query_has_its_limit_and_the_time_to_its_next_commit(plan: Plan) -> None:
    """A micro-batch every ten minutes moves no more often."""
    limit_ms = STALLED_AFTER_MS + COMMIT_MS
    assert reasons(plan, FINE | said("first", lag=1, stalled_ms=limit_ms)) == []
    assert reasons(plan, FINE | said("second", lag=1, stalled_ms=limit_ms + 1)) == []
    assert len(reasons(plan, FINE | said("second", lag=1, stalled_ms=STALLED_AFTER_MS + 600_001))) == 1


def test_analyze_that_no_longer_reports_is_one_reason(plan: Plan) -> None:
    """Not one for each query; and one query that reports shows that analyze lives."""
    silent = {name: Heard(heard.said, NOW_S - 10.5) for name, heard in FINE.items()}
    assert reasons(plan, silent) == [
        "analyze has not reported for 10 s: it is away or hangs: look at /data/logs/analyze.log"
    ]
    assert reasons(plan, silent | said("first")) == []


def test_queries_that_said_nothing_yet_are_named(plan: Plan) -> None:
    (reason,) = reasons(plan, {})
    assert reason.startswith("queries have not started yet: first, second: ")


def test_all_reasons_are_told_at_once(plan: Plan) -> None:
    last = FINE | said("first", "parked", reason="x", slots=0) | said("second", "waiting", reason="y", slots=0)
    found = reasons(plan, last, master="spark://host:7077")
    assert [reason.split(":")[0] for reason in found] == [
        "Spark has no executors, so no query can run",
        "query first is parked",
        "query second waits",
    ]
    assert "start workers for spark://host:7077" in found[0]
    assert status_of(found).startswith("3 reasons, the first: Spark has no executors")
    assert (status_of(found[:1]), status_of([])) == (found[0], "ok")


def metrics(plan: Plan, last: dict[str, Heard]) -> dict[str, str]:
    lines = query_metric_lines(plan, last, NOW_S, STALLED_AFTER_MS)
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_each_number_of_a_query_is_a_metric(plan: Plan) -> None:
    took = Processing(min=1.5, avg=20.0, max=3_000.0, of="result")
    numbers = said(
        "first", lag=7, late=3, restarts=2, rows_in=10, rows_out=9, stalled_ms=1_500, processing_ms=took, slots=9
    )
    found = metrics(plan, FINE | numbers | said("in.dead", rows_out=4))
    assert {
        name: found[f'penstock_query_{name}{{query="first"}}']
        for name in ("lag", "late_rows_total", "restarts_total", "rows_in_total", "rows_out_total")
    } == {"lag": "7", "late_rows_total": "3", "restarts_total": "2", "rows_in_total": "10", "rows_out_total": "9"}
    assert {
        name: found[f'penstock_query_processing_{name}_seconds{{query="first",of="result"}}']
        for name in ("min", "avg", "max")
    } == {"min": "0.001500", "avg": "0.020000", "max": "3.000000"}
    assert found['penstock_query_stalled_seconds{query="first"}'] == "1.500000"
    assert found['penstock_query_stalled_limit_seconds{query="first"}'] == "90.000000"
    assert found['penstock_query_report_age_seconds{query="first"}'] == "0.500000"
    assert found['penstock_dead_letters_total{topic="in"}'] == "4"
    assert found["penstock_spark_task_slots"] == "9"


@pytest.mark.parametrize(
    ("last", "state"),
    [
        ({}, "starting"),
        (said("first", "parked"), "parked"),
        (said("first", "rebalancing"), "rebalancing"),  # of a newer version: none of ours
        (said("first", age_s=11.0), "silent"),
        (said("first", "stopped", age_s=11.0), "stopped"),
    ],
    ids=["unheard", "parked", "newer", "silent", "stopped"],
)
def test_a_query_is_in_one_state(plan: Plan, last: dict[str, Heard], state: str) -> None:
    found = metrics(plan, last)
    values = {each: found[f'penstock_query_state{{query="first",state="{each}"}}'] for each in STATES}
    assert values == {each: str(int(each == state)) for each in STATES}


def test_what_is_unknown_has_no_line(plan: Plan) -> None:
    found = metrics(plan, said("first"))
    assert not [name for name in found if name.startswith(("penstock_query_lag", "penstock_query_processing"))]


def test_reasons_are_looked_for_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, also while a look is under way."""
    now_s, looks = [NOW_S], 0
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])

    async def look(_: float) -> list[str]:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return []

    async def run() -> None:
        readiness = Readiness(look)
        for count in (1, 2):
            await asyncio.gather(*(readiness.reasons() for _ in range(20)))
            now_s[0] += READY_KNOWN_S
            assert await readiness.reasons() == []
            assert looks == count
            now_s[0] += 0.001

    asyncio.run(run())
