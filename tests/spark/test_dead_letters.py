"""Dead letters are on their way until the queue has them; Spark has no part in that."""

from __future__ import annotations

import pytest
from driving.records import read

from penstock.analyze.frames.dead_letters import DeadLetters
from penstock.analyze.frames.rows import AHEAD
from penstock.app import App
from penstock.client.topics import Wanted, provide_topics
from penstock.drills.broker_process import BrokerProcess
from penstock.errors import PenstockError
from penstock.guarantee import Queue
from penstock.plan.plan import TopicPlan
from penstock.plan.planner import plan_app


def topic(name: str) -> TopicPlan:
    app = App("letters")
    app.topic(name, schema="id STRING NOT NULL")
    return plan_app(app, Queue()).topics[name]


def row(offset: int, value: bytes) -> dict[str, object]:
    place = {"topic": "orders", "partition": 0, "offset": offset}
    return {**place, "key": None, "value": value, "headers": None, AHEAD: False}


def test_a_letter_that_the_queue_refuses_fails_the_batch_and_the_next_one_goes_on(broker: BrokerProcess) -> None:
    """A batch counts as done by what was delivered, not by what is no longer under way."""
    provide_topics(broker.target, [Wanted("orders.dead", 1, settings={"max.message.bytes": "2000"})])
    letters = DeadLetters(topic("orders"), broker.target)
    with pytest.raises(PenstockError, match="too large"):
        letters.write_rows([row(0, b"{"), row(1, b"{" * 5_000)])
    letters.write_rows([row(0, b"{"), row(2, b"[")])
    found = read(broker.address, "orders.dead", lambda found: len({r.value for r in found}) == 2)
    assert found[-1].headers["penstock-source"] == "orders/0/2"
    assert found[-1].headers["penstock-reason"]
