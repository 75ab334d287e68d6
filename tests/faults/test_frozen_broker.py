"""A broker that takes connections and answers nothing (SIGSTOP): offsets are unknown until it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from penstock.analyze import queue_probe as analyze_queue
from penstock.analyze.failures import AwayError
from penstock.analyze.queue_probe import Queue
from penstock.client import offsets
from penstock.client.factory import reader_settings
from penstock.client.lookup import last_value
from penstock.client.offsets import LATEST, Offsets, offset_range, offsets_at_time
from penstock.drills.broker_process import BrokerProcess
from penstock.kafka.target import KafkaTarget

QUICK_S = 0.5
TOPIC = "purchases"


@pytest.fixture
def broker(start_broker: Callable[..., BrokerProcess], monkeypatch: pytest.MonkeyPatch) -> BrokerProcess:
    monkeypatch.setattr(analyze_queue, "_ANSWER_S", QUICK_S)
    monkeypatch.setattr(offsets, "_ANSWER_S", QUICK_S)
    running = start_broker()
    producer = Producer({"bootstrap.servers": running.address})
    producer.produce(TOPIC, b"{}")
    assert producer.flush(60) == 0
    return running


def test_a_frozen_broker_is_no_end_of_the_topic(broker: BrokerProcess) -> None:
    queue = Queue(broker.target)
    assert queue.ranges([TOPIC]) == {(TOPIC, 0): (0, 1)}
    broker.pause()
    assert queue.answers(), "the kernel takes its connections"
    assert queue.ends([TOPIC]) == {}
    with pytest.raises(AwayError, match="the leader of purchases/0 does not answer"):
        queue.ranges([TOPIC])
    broker.wake()
    assert queue.ranges([TOPIC]) == {(TOPIC, 0): (0, 1)}


def test_offsets_are_asked_for_again_until_a_frozen_broker_answers(broker: BrokerProcess) -> None:
    async def ask() -> dict[tuple[str, int], int]:
        asked = Offsets(broker.target)
        place = (TOPIC, 0)
        assert await asked.at(LATEST, [place]) == {place: 1}
        broker.pause()
        answer = asyncio.create_task(asked.at(LATEST, [place]))
        done, _ = await asyncio.wait([answer], timeout=4 * QUICK_S)
        assert not done, answer.result()
        broker.wake()
        return await asyncio.wait_for(answer, 60)

    assert asyncio.run(ask()) == {(TOPIC, 0): 1}


def test_a_reader_of_a_frozen_broker_learns_that_it_does_not_answer(broker: BrokerProcess) -> None:
    consumer = Consumer(reader_settings(broker.target, buffered_kib=64))
    assert offset_range(consumer, TOPIC, 0, 60) == (0, 1)
    broker.pause()
    for ask in (
        lambda: offset_range(consumer, TOPIC, 0, QUICK_S),
        lambda: offsets_at_time(consumer, TOPIC, [0], 0, QUICK_S),
        lambda: last_value(broker.target, TOPIC, QUICK_S),
    ):
        with pytest.raises(KafkaException):
            ask()
    consumer.close()


def test_a_time_after_the_last_record_is_no_unknown_offset(broker: BrokerProcess) -> None:
    consumer = Consumer(reader_settings(broker.target, buffered_kib=64))
    far_ms = 4_000_000_000_000
    assert offsets_at_time(consumer, TOPIC, [0], far_ms, 60) == {0: None}
    assert asyncio.run(_at(broker.address, far_ms)) == {(TOPIC, 0): 1}
    consumer.close()


async def _at(address: str, when_ms: int) -> dict[tuple[str, int], int]:
    return await Offsets(KafkaTarget.parse(address)).at(when_ms, [(TOPIC, 0)])
