"""Answers that get lost and brokers that stand still double nothing."""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from penstock.assure.history import Begin, Decide, Outcome, Send, Settle
from penstock.assure.report import report_lines
from penstock.assure.verdict import Result, Verdict, Violation
from penstock.drills.broker_process import BROKER, BrokerProcess
from penstock.drills.proxy import LossyProxy
from penstock.drills.recording_clients import Place, Recorder, RecordingProducer, create_topic, read_all
from penstock.kafka.wire.apis import ApiKey
from penstock.process.free_port import free_port

PLACE = Place("answers", 0)
PLANT = Path(__file__).parent / "plants" / "late_end_accepted.py"
Start = Callable[..., BrokerProcess]


@pytest.mark.timeout(120)
def test_the_retry_after_a_lost_answer_is_recognised(start_broker: Start, recorder: Recorder) -> None:
    """The broker stored the batch, the client never heard of it and sends again: it stands once."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    chance = random.Random(seed)
    gate = free_port()
    broker = start_broker(settings={"advertise": f"127.0.0.1:{gate}"})
    with LossyProxy(broker.port, gate) as proxy:
        create_topic(f"127.0.0.1:{gate}", PLACE.topic)
        producer = RecordingProducer("p", f"127.0.0.1:{gate}", recorder)
        for _ in range(15):
            proxy.swallow(ApiKey.PRODUCE, chance.randrange(1, 4))
            for _ in range(chance.randrange(1, 200)):
                producer.send(PLACE)
            producer.settle()
        read_all("final", broker.address, recorder, [PLACE])
        verdict = recorder.verdict()

    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}"
    assert verdict.result is Result.VALID, "\n".join([*report_lines(verdict), repeat])
    assert verdict.tally.acked == verdict.tally.offsets_read == verdict.tally.writes, repeat
    assert proxy.swallowed >= 15, repeat
    assert broker.metric("repeats_total") >= 15, repeat
    assert producer.troubles == [], repeat


@pytest.mark.timeout(120)
def test_a_paused_broker_goes_on_where_it_stood(start_broker: Start, recorder: Recorder) -> None:
    """Five seconds of standing still, longer than clients wait for an answer: nothing lost, nothing doubled."""
    broker = start_broker()
    create_topic(broker.address, PLACE.topic)
    producer = RecordingProducer("p", broker.address, recorder, socket_timeout_ms=2000, request_timeout_ms=1500)
    for _ in range(500):
        producer.send(PLACE)
    producer.settle()
    broker.pause()
    waking = threading.Timer(5, broker.wake)
    waking.start()
    for _ in range(1000):
        producer.send(PLACE)
    producer.settle()
    waking.join()
    read_all("final", broker.address, recorder, [PLACE])

    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))
    assert verdict.tally.acked == verdict.tally.offsets_read == 1500
    assert producer.troubles == []


@pytest.mark.timeout(180)
def test_an_end_held_back_beyond_the_next_begin_ends_nothing(start_broker: Start, recorder: Recorder) -> None:
    """A commit that arrives while its owner's next life is in another transaction is fenced."""
    verdict = _commit_late(start_broker, recorder, BROKER)

    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))
    assert (verdict.tally.transactions, verdict.tally.aborted) == (2, 1)


@pytest.mark.timeout(180)
def test_a_broker_that_does_not_fence_a_late_end_is_convicted(start_broker: Start, recorder: Recorder) -> None:
    """With the plant, the late commit ends the transaction that was meant to be aborted."""
    verdict = _commit_late(start_broker, recorder, (sys.executable, str(PLANT)))

    assert verdict.result is Result.INVALID
    assert set(verdict.violations) == {Violation.ABORTED_READ}


def _commit_late(start_broker: Start, recorder: Recorder, command: Sequence[str]) -> Verdict:
    gate = free_port()
    broker = start_broker(command=command, settings={"advertise": f"127.0.0.1:{gate}"})
    with LossyProxy(broker.port, gate) as proxy:
        address = f"127.0.0.1:{gate}"
        create_topic(address, PLACE.topic)
        first = _begin(address, recorder, "first")
        proxy.hold(ApiKey.END_TXN, ApiKey.PRODUCE)
        recorder.record(Decide("first", "first", commit=True))
        with pytest.raises(KafkaException):
            first.commit_transaction(3)
        second = _begin(address, recorder, "second")
        while not proxy.held_back:
            second.poll(0.01)
        # The late end has reached the broker by the time that two answers came after it.
        second.list_topics(PLACE.topic, 60)
        second.list_topics(PLACE.topic, 60)
        with suppress(KafkaException):
            second.abort_transaction(60)
        read_all("final", address, recorder, [PLACE])
        read_all("final-committed", address, recorder, [PLACE], isolation_level="read_committed")
    return recorder.verdict()


def _begin(address: str, recorder: Recorder, name: str) -> Producer:
    """The next life of the owner `till`, with one record written in a transaction called like the life."""
    owner = Producer({"bootstrap.servers": address, "transactional.id": "till", "client.id": "till", "log_level": 0})
    owner.init_transactions(60)
    recorder.record(Begin(name, name))
    owner.begin_transaction()
    recorder.record(Send(name, *PLACE, name, name, name))
    faults: list[object] = []
    owner.produce(PLACE.topic, name, partition=PLACE.partition, on_delivery=lambda error, _: faults.append(error))
    owner.flush(60)
    assert faults == [None]
    recorder.record(Settle(name, *PLACE, name, Outcome.OK))
    return owner
