"""The producer of an edge on a real broker: every event is reported once, whatever happens to its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from penstock.app import App
from penstock.client.producer import TURNS_HELD, EventProducer
from penstock.client.topics import provide_topics
from penstock.drills.broker_process import BrokerProcess
from penstock.guarantee import Guarantee, Queue
from penstock.plan.plan import Plan
from penstock.plan.planner import plan_app
from penstock.plan.topics import wanted_topics
from penstock.sources import Http

DEADLINE_S = 60.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", tmp_path) as started:
        yield started


def plan_of(broker: BrokerProcess) -> Plan:
    app = App("shop")
    app.ingest(Http(), into=app.topic("safe", schema="n INT"))
    some = Guarantee(loss="some", delivery="at-most-once")
    app.ingest(Http(), into=app.topic("fleeting", schema="n INT", guarantee=some))
    plan = plan_app(app, Queue())
    provide_topics(broker.target, list(wanted_topics(plan)))
    return plan


class Reports:
    """What was told of each event."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.heard: list[tuple[int, Any]] = []
        self.all = asyncio.Event()

    def __call__(self, number: int, error: Any, message: Any) -> None:
        self.heard.append((number, error))
        if len(self.heard) == self.count:
            self.all.set()


def events(count: int) -> list[tuple[bytes, bytes | None, Any]]:
    return [(b'{"n":%d}' % number, None, [("penstock-id", b"%d" % number)]) for number in range(count)]


def test_all_that_is_sent_is_reported_once_and_in_order(broker: BrokerProcess) -> None:
    """Alone, while others are under way, and by both ways of acknowledging."""

    async def run() -> None:
        producer = EventProducer(broker.target, plan_of(broker), deadline_ms=30_000, buffer_bytes_max=2**26)
        sent = []
        for number in range(50):
            reports = Reports(100)
            producer.send(("safe", "fleeting")[number % 2], events(100), reports)
            sent.append(reports)
            if number % 10 == 0:
                await asyncio.sleep(0)
        for reports in sent:
            await asyncio.wait_for(reports.all.wait(), DEADLINE_S)
            assert reports.heard == [(number, None) for number in range(100)]
        (fault,) = await producer.topic_faults(["safe", "other"], DEADLINE_S)
        assert fault.startswith("topic other is missing in the queue: start the app again")
        await producer.close()

    asyncio.run(run())


def test_after_a_fatal_error_another_connection_takes_over_and_nothing_is_left_unreported(
    broker: BrokerProcess,
) -> None:
    """What the broken one had is reported as failed, so that no request waits for ever."""

    async def run() -> None:
        noted: list[str] = []
        producer = EventProducer(
            broker.target,
            plan_of(broker),
            deadline_ms=60_000,
            buffer_bytes_max=2**26,
            note=lambda event, detail: noted.append(event),
        )
        broker.pause()
        stuck = Reports(10)
        producer.send("safe", events(10), stuck)
        broken = KafkaError(KafkaError._FATAL, "planted", True)
        producer._configuration(producer._settings["safe"])["error_cb"](broken)
        after = Reports(10)
        producer.send("safe", events(10), after)
        await asyncio.wait_for(stuck.all.wait(), DEADLINE_S)
        assert all(error is not None for _, error in stuck.heard)
        broker.wake()
        await asyncio.wait_for(after.all.wait(), DEADLINE_S)
        assert [error for _, error in after.heard] == [None] * 10
        assert "queue_trouble" in noted
        await producer.close()

    asyncio.run(run())


def test_a_changed_limit_keeps_every_event_and_their_order(broker: BrokerProcess) -> None:
    """Another connection takes over when what is under way has ended; it does not wait for a queue that is idle."""

    async def run() -> None:
        producer = EventProducer(broker.target, plan_of(broker), deadline_ms=30_000, buffer_bytes_max=2**26)
        sent = []
        for number in range(40):
            reports = Reports(50)
            numbered = [(b'{"n":%d}' % (number * 50 + each), b"key", None) for each in range(50)]
            producer.send("safe", numbered, reports)
            sent.append(reports)
            if number % 4 == 0:
                producer.set_limit("safe", 10_000 + number)
            if number % 10 == 0:
                await asyncio.wait_for(reports.all.wait(), DEADLINE_S)
        for reports in sent:
            await asyncio.wait_for(reports.all.wait(), DEADLINE_S)
            assert [error for _, error in reports.heard] == [None] * 50
        broker.pause()
        stuck, later = Reports(10), Reports(10)
        producer.send("safe", events(10), stuck)
        producer.set_limit("safe", 7_000)
        producer.send("safe", events(10), later)
        for _ in range(5 * TURNS_HELD):
            assert producer._timer is not None
            producer._timer.cancel()
            producer._turn()
        assert sum(map(len, producer._all)) == 10, "the later events wait for those under way"
        broker.wake()
        for reports in (stuck, later):
            await asyncio.wait_for(reports.all.wait(), DEADLINE_S)
        while producer._timer is not None:
            await asyncio.sleep(0.001)
        producer.set_limit("safe", 5_000)
        assert producer._settings["safe"].bytes_max == 5_000
        assert len(producer._producers) == 2
        await producer.close()

    asyncio.run(run())
    settings = {"bootstrap.servers": broker.address, "group.id": "reader", "enable.partition.eof": True, "log_level": 0}
    reader: Any = Consumer(settings)
    reader.assign([TopicPartition("safe", 0, 0)])
    values: list[bytes] = []
    while (message := reader.poll(DEADLINE_S)) is not None and message.error() is None:
        if message.key() == b"key":
            values.append(message.value())
    reader.close()
    assert values == [b'{"n":%d}' % number for number in range(2_000)]


def test_a_changed_limit_holds_only_its_own_topic(broker: BrokerProcess) -> None:
    """What is under way for the changed topic never ends; the other topic is stored."""

    async def run() -> tuple[list[tuple[int, Any]], int]:
        producer = EventProducer(
            broker.target,
            plan_of(broker),
            deadline_ms=60_000,
            buffer_bytes_max=2**20,
            limit=lambda _: None,
        )
        stuck = producer._producer("safe")
        stuck.produce("a-topic-that-nobody-makes", b"v")  # it waits for a leader until the deadline
        producer.set_limit("safe", 500_000)
        producer._timer = asyncio.get_running_loop().call_soon(producer._turn)  # as while events are under way
        producer.set_limit("safe", 600_000)
        late, other = Reports(1), Reports(3)
        producer.send("safe", events(1), late)
        producer.send("fleeting", events(3), other)
        await asyncio.wait_for(other.all.wait(), DEADLINE_S)
        held = len(late.heard)
        producer._changes.clear()
        await producer.close()
        return other.heard, held

    heard, _ = asyncio.run(run())
    assert [error for _, error in heard] == [None] * 3


def test_closing_reports_what_the_queue_never_took(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        monkeypatch.setattr("penstock.client.producer.CLOSE_WITHIN_S", 0.2)
        producer = EventProducer(broker.target, plan_of(broker), deadline_ms=60_000, buffer_bytes_max=2**26)
        broker.pause()
        under_way, held = Reports(5), Reports(5)
        producer.send("safe", events(5), under_way)
        producer.send("safe", events(5), held)
        await producer.close()
        await asyncio.wait_for(under_way.all.wait(), DEADLINE_S)
        await asyncio.wait_for(held.all.wait(), DEADLINE_S)
        broker.wake()

    asyncio.run(run())
