"""docs/operations.md: its alert rules are YAML that Prometheus reads, of metrics that there are."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.edge.edge_stage import DEADLINE_S, EdgeStage

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
METRIC = re.compile(r"\bpenstock_\w+")
PROMISES = (
    "NotReady", "QueryParked", "QueryNotMoving", "LagGrows", "DeadLetters", "EventsRefused", "DiskFull", "DiskFailed"
)  # fmt: skip


def rules() -> list[dict[str, Any]]:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    groups: list[dict[str, Any]] = yaml.safe_load(text)["groups"]
    assert [sorted(group) for group in groups] == [["name", "rules"]]
    found: list[dict[str, Any]] = groups[0]["rules"]
    return found


def test_each_promise_has_a_rule_that_prometheus_reads() -> None:
    found = rules()
    names = [rule["alert"] for rule in found]
    assert {f"Penstock{promise}" for promise in PROMISES} <= set(names)
    assert len(names) == len(set(names))
    for rule in found:
        assert set(rule) <= {"alert", "expr", "for", "annotations"}, rule
        assert METRIC.search(rule["expr"]), rule
        assert rule["expr"].count("(") == rule["expr"].count(")"), rule
        assert re.fullmatch(r"[1-9][0-9]*[smhd]", rule.get("for", "1m")), rule
        assert rule["annotations"]["summary"], rule


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The metrics of an edge and its broker, with the label names of each; something of everything has happened."""
    stage = EdgeStage(tmp_path_factory.mktemp("alerts"))
    try:
        took = {"min": 1, "avg": 2, "max": 3, "of": "result"}
        producer = Producer({"bootstrap.servers": stage.broker.address, "linger.ms": 0})
        consumer = Consumer({"bootstrap.servers": stage.broker.address, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("purchases", 0, 0)], asynchronous=False)
        consumer.close()
        assert stage.post("/ingest/purchases", {"id": "a"}).status == 202
        assert stage.post("/ingest/purchases", {"id": 7}).status == 400
        deadline = time.monotonic() + DEADLINE_S
        text = ""
        while "penstock_dead_letters_total{" not in text or "penstock_group_lag{" not in text:
            assert time.monotonic() < deadline, text
            for query in ("decide", "purchases.dead"):
                said = {"app": "shop", "query": query, "state": "running", "at_ms": 0, "lag": 1, "slots": 1}
                producer.produce("penstock.queries", json.dumps(said | {"processing_ms": took}))
            assert producer.flush(DEADLINE_S) == 0
            text = stage.get("/metrics").json
        text += stage.broker.get("/metrics")[1]
    finally:
        stage.close()
    families = dict.fromkeys(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE), frozenset())
    found: dict[str, set[str]] = {name: set() for name in families}
    for name, labels in re.findall(r"^(penstock_\w+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def test_each_metric_of_a_rule_is_in_an_answer_of_metrics(served: dict[str, set[str]]) -> None:
    for rule in rules():
        for name in METRIC.findall(rule["expr"]):
            assert name in served, rule


def test_each_label_of_a_rule_is_on_its_metric(served: dict[str, set[str]]) -> None:
    for rule in rules():
        there = set().union(*(served[name] for name in METRIC.findall(rule["expr"])))
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        used |= set(re.findall(r"\{(\w+)=", rule["expr"])) | set(re.findall(r"(?:by|on) ?\((\w+)\)", rule["expr"]))
        if "events_unstored" not in rule["expr"]:  # nothing was lost here, so it has no sample
            assert used <= there, rule


def test_the_labels_that_the_page_names_are_on_their_metrics(served: dict[str, set[str]]) -> None:
    named = re.findall(r"`(penstock_\w+)\{([\w,]+)\}`", PAGE.read_text())
    assert len(named) > 10
    for name, labels in named:
        if served[name]:  # nothing was lost here, so one of them has no sample
            assert set(labels.split(",")) == served[name], name


def test_each_metric_that_the_page_names_is_there(served: dict[str, set[str]]) -> None:
    names = {name for name in METRIC.findall(PAGE.read_text()) if not name.endswith("_")}
    assert names <= set(served), names - set(served)
