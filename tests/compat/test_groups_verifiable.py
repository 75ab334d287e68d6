"""Kafka's own judges: VerifiableProducer and VerifiableConsumer say what they saw, record by record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asking.connection import Connection
from asking.java import run_java
from asking.requests import create_topic

COUNT = 2_000


def events(main_class: str, address: str, topic: str, *args: str) -> list[dict[str, Any]]:
    """What a judge printed, one event a line."""
    done = run_java(main_class, "--bootstrap-server", address, "--topic", topic, "--max-messages", str(COUNT), *args)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafkas_own_judges_are_content(connection: Connection, broker_address: str, topic: str, protocol: str) -> None:
    """Everything acknowledged is consumed once and in order, and every commit succeeds."""
    create_topic(connection, topic, 3)
    written = events("org.apache.kafka.tools.VerifiableProducer", broker_address, topic, "--acks", "-1")
    assert (written[-1]["sent"], written[-1]["acked"]) == (COUNT, COUNT)
    judge = ("--group-id", topic, "--group-protocol", protocol, "--reset-policy", "earliest")
    seen = events("org.apache.kafka.tools.VerifiableConsumer", broker_address, topic, *judge)
    batches = [event for event in seen if event["name"] == "records_consumed"]
    assert sum(batch["count"] for batch in batches) == COUNT
    commits = [event for event in seen if event["name"] == "offsets_committed"]
    assert commits
    assert all(commit["success"] for commit in commits)
