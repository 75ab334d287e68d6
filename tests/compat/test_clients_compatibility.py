"""Kafka's own judge of brokers: ClientCompatibilityTest asks for all that its client can do."""

from __future__ import annotations

from asking.connection import Connection
from asking.java import run_java
from asking.requests import create_topic

from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

ADMIN = ("create-topics", "describe-acls", "describe-configs")
ATTEMPTS = 5
TOO_SLOW = "Timed out after 10000 ms"  # the judge's own patience, which a busy machine exhausts
ITS_OWN = "newtopic"  # what it makes; one that ran out of patience leaves it behind
PROMISED = ("offsets-for-times", "cluster-id", "idempotent-producer", *ADMIN)


def test_kafkas_judge_of_brokers_finds_every_feature(connection: Connection, broker_address: str, topic: str) -> None:
    """Produce, seek by time, cluster id, admin calls, idempotence, a record larger than a fetch; on both brokers."""
    features = [word for name in PROMISED for word in (f"--{name}-supported", "true")]
    expected = ("--num-cluster-nodes", "1", "--expect-record-too-large-exception", "false", *features)
    for attempt in range(ATTEMPTS):
        left = DeleteTopicsRequest(topics=[DeleteTopicState(name=ITS_OWN)], timeout_ms=10_000)
        connection.ask(left, 6, DeleteTopicsResponse)
        create_topic(connection, f"{topic}-{attempt}")
        at = ("--bootstrap-server", broker_address, "--topic", f"{topic}-{attempt}")
        done = run_java("org.apache.kafka.tools.ClientCompatibilityTest", *at, *expected)
        if TOO_SLOW not in done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
