"""Answers that get lost and brokers that stand still double nothing."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable

import pytest

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess, free_port
from penstock.drills.clients import Place, RecordingProducer, read_all
from penstock.drills.proxy import LossyProxy
from penstock.drills.recorder import Recorder
from penstock.drills.topics import create_topic
from penstock.wire.apis import ApiKey

PLACE = Place("answers", 0)
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
