"""GET /ready and /metrics of a real edge: red with every reason while something does not work; numbers of all."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.plan.run_spec import CHECKED_FIRST
from tests.edge.edge_stage import DEADLINE_S, EdgeStage

FAILING_SYNC = Path(__file__).parents[1] / "faults" / "plants" / "failing_kernel_sync.py"
QUERIES = ("decide", "judge", "count_stars")


class Reports:
    """Stands in for analyze: what is to be said of each query."""

    def __init__(self, stage: EdgeStage) -> None:
        self._producer = Producer({"bootstrap.servers": stage.broker.address, "linger.ms": 0, "log_level": 0})
        self._said: dict[str, dict[str, Any]] = {name: {"state": "running", "slots": 9} for name in QUERIES}

    def change(self, query: str, **said: Any) -> None:
        self._said.setdefault(query, {}).update(said)

    def send(self) -> None:
        for query, said in self._said.items():
            record = {"app": "shop", "query": query, "at_ms": time.time_ns() // 1_000_000} | said
            self._producer.produce("penstock.queries", json.dumps(record).encode(), f"shop/{query}")
        assert self._producer.flush(DEADLINE_S) == 0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    built = EdgeStage(tmp_path_factory.mktemp("ready"), words=[CHECKED_FIRST], stalled_after_ms=1_000)
    built.tell_edge()
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()


@pytest.fixture
def reports(stage: EdgeStage) -> Reports:
    return Reports(stage)


def reasons(stage: EdgeStage) -> list[str]:
    answer = stage.get("/ready")
    found: list[str] = answer.json["reasons"]
    assert answer.status == (503 if found else 200)
    return found


def wait_for(fact: Callable[[], bool], what: Callable[[], object] = lambda: "it did not happen") -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not fact():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


def wait_for_reasons(stage: EdgeStage, reports: Reports, *beginnings: str) -> list[str]:
    """Until these are the reasons, in this order; what is said is said again each time."""
    found: list[str] = []

    def is_so() -> bool:
        reports.send()
        found[:] = reasons(stage)
        return len(found) == len(beginnings) and all(map(str.startswith, found, beginnings))

    wait_for(is_so, lambda: found)
    return found


def test_each_query_that_does_not_work_is_a_reason_and_none_when_all_work_again(
    stage: EdgeStage, reports: Reports
) -> None:
    """All of them at once; each names the query and says what to do."""
    wait_for_reasons(stage, reports)
    reports.change("decide", state="parked", reason="DivideByZero in shop.py line 3")
    reports.change("judge", lag=12, stalled_ms=1_000_000)
    reports.change("purchases.dead", state="starting", reason="it waits")
    parked, stalled = wait_for_reasons(stage, reports, "query decide is parked: Divide", "query judge has not moved")
    assert parked.endswith("remove the cause, then start the app again")
    assert "for 1000 s, 12 events behind: look at Spark's pages" in stalled
    assert stage.get("/ready").json["status"].startswith("2 reasons, the first: query decide is parked")
    assert stage.get("/health").status == 200
    assert number(stage, "penstock_edge_ready") == 0
    reports.change("decide", state="running", reason=None)
    reports.change("judge", lag=0, stalled_ms=0)
    wait_for_reasons(stage, reports)
    assert stage.get("/ready").json == {"status": "ok", "reasons": []}
    assert number(stage, "penstock_edge_ready") == 1


def test_spark_without_executors_is_a_reason(stage: EdgeStage, reports: Reports) -> None:
    for query in QUERIES:
        reports.change(query, slots=0)
    wait_for_reasons(stage, reports, "Spark has no executors, so no query can run")
    assert number(stage, "penstock_spark_task_slots") == 0


def test_reports_of_other_apps_and_of_unknown_queries_are_not_shown(stage: EdgeStage, reports: Reports) -> None:
    """Every client may write to that topic: the app bounds what an edge keeps and shows."""
    reports.change("unknown", state="parked")
    reports.change("judge", app="another", state="parked")
    reports.send()
    reports.change("judge", app="shop", state="running")
    wait_for_reasons(stage, reports)
    assert 'query="unknown"' not in stage.get("/metrics").json


def test_the_numbers_of_queries_are_metrics(stage: EdgeStage, reports: Reports) -> None:
    took = {"min": 1.5, "avg": 20, "max": 3_000, "of": "result"}
    reports.change("decide", lag=7, late=3, restarts=2, processing_ms=took)
    name = '{query="decide"}'
    wait_for(lambda: (reports.send(), number(stage, f"penstock_query_lag{name}") == 7)[1])
    assert number(stage, 'penstock_query_state{query="decide",state="running"}') == 1
    assert number(stage, 'penstock_query_state{query="decide",state="parked"}') == 0
    assert number(stage, f"penstock_query_late_rows_total{name}") == 3
    assert number(stage, f"penstock_query_restarts_total{name}") == 2
    of = '{query="decide",of="result"}'
    found = [number(stage, f"penstock_query_processing_{which}_seconds{of}") for which in ("min", "avg", "max")]
    assert found == [0.0015, 0.02, 3.0]
    free, size = (number(stage, f"penstock_data_{which}_bytes") for which in ("free", "size"))
    assert 0 < free < size


def number(stage: EdgeStage, name: str) -> float:
    """One number of /metrics; -1 if it is not there."""
    text: str = stage.get("/metrics").json
    return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} ")), -1.0)


def test_the_lag_of_groups_is_a_metric(stage: EdgeStage) -> None:
    """Of the app's topics, for each group that has committed there; any name of a group is a label."""
    assert stage.post("/ingest/purchases", [{"id": f"g{n}", "card": "one"} for n in range(10)]).status == 202
    settings = {"bootstrap.servers": stage.broker.address, "enable.auto.commit": False, "log_level": 0}
    partition = next(record.partition for record in stage.stored("purchases"))
    for group, position in (("reports", 4), ('a "b"\\c', 10)):
        consumer = Consumer({**settings, "group.id": group})
        consumer.commit(offsets=[TopicPartition("purchases", partition, position)], asynchronous=False)
        consumer.close()
    other = Consumer({**settings, "group.id": "silent"})
    other.commit(offsets=[TopicPartition("penstock.queries", 0, 0)], asynchronous=False)
    other.close()
    wait_for(lambda: number(stage, 'penstock_group_lag{group="reports",topic="purchases"}') == 6)
    assert number(stage, 'penstock_group_lag{group="a \\"b\\"\\\\c",topic="purchases"}') == 0
    assert "silent" not in "".join(re.findall("penstock_group_lag{.*", stage.get("/metrics").json))


def test_metrics_are_whole_prometheus_text(stage: EdgeStage) -> None:
    """Each family has its help and its type once, before its samples; no sample stands there twice."""
    text: str = stage.get("/metrics").json
    named: list[str] = []
    samples: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            named.append(line.split()[2])
        elif not line.startswith("#"):
            sample, _, value = line.rpartition(" ")
            float(value)
            assert sample not in samples
            samples.add(sample)
            assert sample.startswith(named[-1]), line
    assert len(named) == len(set(named))


def test_a_partition_whose_disk_failed_is_a_reason_until_it_takes_events_again(tmp_path: Path) -> None:
    """The broker acknowledges nothing there after a failed sync; an event that is too large is no such reason."""
    broker = {"command": (sys.executable, str(FAILING_SYNC), "20"), "settings": {"sync_shares_flush": False}}
    stage = EdgeStage(tmp_path, broker=broker, store_deadline_ms=1_000)
    try:
        assert reasons(stage) == []
        assert stage.post("/ingest/anything", {"a": "x" * 950_000}).status != 202
        number_of = iter(range(10_000))
        failing: dict[str, str] = {}

        def is_failing() -> bool:
            card = str(next(number_of))
            event = {"id": card, "card": card}
            failing.update(event)
            return stage.post("/ingest/purchases", event).status == 503

        wait_for(is_failing)
        wait_for(lambda: bool(reasons(stage)))
        (reason,) = reasons(stage)
        assert re.match(r"topic purchases cannot be written: partition [01] did not take its last event \(", reason)
        assert number(stage, "penstock_edge_ready") == 0
        stage.broker.kill()
        stage.broker.start()
        wait_for(lambda: stage.post("/ingest/purchases", failing).status == 202)
        wait_for(lambda: not reasons(stage))
    finally:
        stage.close()
