"""Four answers, and what follows from them."""

from __future__ import annotations

import itertools

import pytest

from penstock.guarantee import (
    DELIVERIES,
    OUTAGES,
    Guarantee,
    Queue,
    copies_words,
    duration_ms,
    refusals,
    weakest,
)
from penstock.plan.policies import policy_of

ONE = Queue()
CLUSTER = Queue("kafka", 3)


def settings(guarantee: Guarantee, queue: Queue = ONE) -> dict[str, str]:
    return {row.name: row.value for row in policy_of(guarantee, queue).rows(queue.kind)}


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90 days", 7_776_000_000), ("1 hour", 3_600_000), ("500 ms", 500), ("10minutes", 600_000), ("2 fortnights", None),
     ("days", None), ("-1 day", None)],
)  # fmt: skip
def test_durations_read_as_people_write_them(text: str, ms: int | None) -> None:
    """And what is none is not guessed at."""
    assert duration_ms(text) == ms


def test_every_combination_is_planned_refused_or_contradictory() -> None:
    """There is no fourth way, and every setting has a reason."""
    for outage, loss, history, delivery, queue in itertools.product(
        OUTAGES, ("none", "5 seconds", "some"), ("none", "3 days", "forever"), DELIVERIES, (Queue(), CLUSTER)
    ):
        guarantee = Guarantee(outage, loss, history, delivery)
        if guarantee.faults() or refusals(guarantee, queue):
            continue
        plan = list(policy_of(guarantee, queue).rows(queue.kind))
        assert all(setting.reason and setting.value for setting in plan)
        assert len({(s.tier, s.name) for s in plan}) == len(plan)


def test_no_loss_means_fsync_before_the_acknowledgement() -> None:
    """On our queue and on Kafka."""
    assert settings(Guarantee())["penstock.durability"] == "disk"
    assert settings(Guarantee(), CLUSTER)["flush.messages"] == "1"
    assert settings(Guarantee())["acks"] == "all"


def test_a_loss_that_may_be_is_bounded_by_what_memory_topics_keep() -> None:
    """They are synced every second; less than two seconds cannot be promised by them."""
    assert settings(Guarantee(loss="1 second"))["penstock.durability"] == "disk"
    assert settings(Guarantee(loss="5 seconds"))["penstock.durability"] == "memory"
    assert settings(Guarantee(loss="5 seconds"), CLUSTER)["flush.ms"] == "5000"


def test_history_is_retention() -> None:
    """None keeps an hour, so that a query can catch up."""
    asked = ("none", "5 minutes", "90 days", "forever")
    kept = [settings(Guarantee(history=text))["retention.ms"] for text in asked]
    assert kept == ["3600000", "3600000", "7776000000", "-1"]


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (Guarantee(loss="none", delivery="at-most-once"), "contradicts"),
        (Guarantee(loss="some", delivery="exactly-once"), "contradicts"),
        (Guarantee(loss="little"), "such as '5 seconds'"),
        (Guarantee(outage="bad"), "catastrophic, costly, tolerable"),
        (Guarantee(history="long"), "such as '90 days'"),
        (Guarantee(history="0 days"), "such as '90 days'"),
        (Guarantee(delivery="twice"), "at-most-once, at-least-once, exactly-once"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(guarantee: Guarantee, words: str) -> None:
    """That says what could be."""
    (fault,) = guarantee.faults()
    assert words in fault


def test_one_machine_cannot_promise_what_needs_three() -> None:
    """And says the way out."""
    (fault,) = refusals(Guarantee(outage="catastrophic"), Queue())
    assert "--queue" in fault
    assert "outage='costly'" in fault
    assert refusals(Guarantee(outage="catastrophic"), CLUSTER) == []
    assert settings(Guarantee(outage="catastrophic"), CLUSTER)["replication.factor"] == "3"


def test_no_loss_on_a_cluster_is_acknowledged_by_two_copies_or_its_limit_is_said() -> None:
    assert settings(Guarantee(), CLUSTER)["min.insync.replicas"] == "2"
    assert "min.insync.replicas" not in settings(Guarantee(loss="some"), CLUSTER)
    assert "min.insync.replicas" not in settings(Guarantee(), Queue("kafka", 2))
    assert copies_words(Guarantee(), 1, 1) == "one copy: a lost disk loses records"
    assert "3 copies with min.insync.replicas=1" in copies_words(Guarantee(), 3, 1)
    assert copies_words(Guarantee(), 3, 2) == copies_words(Guarantee(loss="some"), 1, 1) == ""


@pytest.mark.parametrize("queue", [Queue(), CLUSTER])
def test_exactly_once_is_a_transaction_of_whole_batches(queue: Queue) -> None:
    """On our queue and on Kafka; readers have nothing to drop."""
    once = Guarantee(delivery="exactly-once")
    assert refusals(once, queue) == []
    found = settings(once, queue)
    assert (found["modes"], found["output"], found["start"]) == ("microbatch", "transaction", "checkpoint")
    assert (found["isolation"], found["repeats"], found["may_skip"]) == ("committed", "none", "no")


def test_a_chain_is_as_strong_as_its_weakest_link() -> None:
    """For each of the four questions."""
    strong = Guarantee("catastrophic", "none", "forever", "at-least-once")
    weak = Guarantee("tolerable", "some", "1 hour", "at-most-once")
    mixed = Guarantee("costly", "5 seconds", "forever", "at-least-once")
    assert weakest(strong, weak) == weak
    assert weakest(strong, mixed) == mixed
    assert weakest(mixed, weak, strong) == weak
