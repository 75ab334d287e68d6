"""Which topics do not take writes: by the outcomes of events, and by the queue's list of topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from penstock.client.group_lags import lags_of
from penstock.client.producer import metadata_faults
from penstock.client.topic_writes import FAULT_KNOWN_S, TopicWrites
from penstock.metrics import family

TIMED_OUT = ("_MSG_TIMED_OUT", "Local: Message timed out")


def test_a_partition_is_at_fault_until_it_takes_an_event() -> None:
    """Another partition that takes events does not hide it."""
    writes = TopicWrites()
    writes.failed("in", 1, *TIMED_OUT, 0.0)
    writes.stored("in", 0)
    (sentence,) = writes.sentences(1.0)
    assert sentence.startswith("topic in cannot be written: partition 1 did not take its last event (Local: Message ti")
    writes.failed("in", 0, *TIMED_OUT, 2.0)
    assert "partitions 0, 1 did not take" in writes.sentences(3.0)[0]
    for partition in (0, 1):
        writes.stored("in", partition)
    assert writes.sentences(3.0) == []
    assert not writes


@pytest.mark.parametrize("name", ["MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "_QUEUE_FULL"])
def test_an_event_that_is_refused_for_itself_says_nothing_about_its_topic(name: str) -> None:
    writes = TopicWrites()
    writes.failed("in", 0, name, "text", 0.0)
    assert writes.sentences(0.0) == []


def test_a_fault_is_forgotten_after_a_minute_without_another() -> None:
    """While /ready is red a load balancer sends nothing, and no event could end it."""
    writes = TopicWrites()
    writes.failed("in", -1, *TIMED_OUT, 0.0)
    assert writes.sentences(FAULT_KNOWN_S - 1)[0].startswith("topic in cannot be written: the queue did not take")
    writes.failed("in", -1, *TIMED_OUT, FAULT_KNOWN_S - 1)
    assert writes.sentences(FAULT_KNOWN_S + 1)
    assert writes.sentences(2 * FAULT_KNOWN_S) == []


def test_an_outage_of_the_queue_explains_what_failed_in_it() -> None:
    writes = TopicWrites()
    writes.failed("in", 0, *TIMED_OUT, 0.0)
    writes.forget()
    assert writes.sentences(0.0) == []


def topic(*leaders: int, error: Any = None, faults: Any = None) -> SimpleNamespace:
    parts = {n: SimpleNamespace(id=n, leader=leader, error=faults) for n, leader in enumerate(leaders)}
    return SimpleNamespace(partitions=parts, error=error)


def test_the_list_of_topics_shows_what_is_missing_or_has_no_leader() -> None:
    """Also of topics to which nothing was sent."""
    there = {
        "fine": topic(0, 0),
        "behind": topic(0, faults=KafkaError(KafkaError.REPLICA_NOT_AVAILABLE)),
        "lost": topic(0, -1, -1),
        "broken": topic(error=KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)),
    }
    found = metadata_faults(there, ["fine", "behind", "lost", "broken", "gone", "away"])
    assert [fault.split(":")[0] for fault in found] == [
        "topics gone, away are missing in the queue",
        "topic lost cannot be written",
        "topic broken cannot be written (Broker",
    ]
    assert "no broker leads partitions 1, 2: start the brokers" in found[1]


def test_the_lag_of_a_group_is_the_sum_over_partitions_in_which_it_committed() -> None:
    committed = {"g": {("t", 0): 3, ("t", 1): 10, ("u", 0): 9}, "h": {("t", 0): 5}, "none": {}}
    ends = {("t", 0): 5, ("t", 1): 12}
    assert lags_of(committed, ends) == {("g", "t"): 4, ("h", "t"): 0}


def test_labels_of_metrics_are_escaped() -> None:
    """A group may have any name."""
    lines = list(family("m", "gauge", "Help.", [({"group": 'a"b\\c\nd'}, 1), ({}, 0.5)]))
    assert lines == ["# HELP m Help.", "# TYPE m gauge", 'm{group="a\\"b\\\\c\\nd"} 1', "m 0.500000"]
