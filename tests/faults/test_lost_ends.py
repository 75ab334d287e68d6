"""The exactly-once writer and a commit of which it never hears: it initialises again, and each result stands once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.exactly_once import transactional_sink as once
from penstock.analyze.exactly_once.batch_tokens import token_of
from penstock.analyze.failures import AwayError
from penstock.client.topics import Wanted, provide_topics
from penstock.client.transactions import describe_transaction
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.proxy import LossyProxy
from penstock.drills.recording_clients import read_topic
from penstock.kafka.target import KafkaTarget
from penstock.kafka.wire.apis import ApiKey
from penstock.process.free_port import free_port

OUT, BATCHES = "out", "out.batches"
WAITED_S = 2.0
Start = Callable[..., BrokerProcess]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_answer_lost", [True, False], ids=["answer", "end"])
def test_a_batch_whose_commit_was_not_answered_stands_once(
    is_answer_lost: bool, start_broker: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed before the answer was lost, it is not written again; if the end itself was lost, it is."""
    gate = free_port()
    broker = start_broker(settings={"advertise": f"127.0.0.1:{gate}"})
    with LossyProxy(broker.port, gate) as proxy:
        provide_topics(broker.target, [Wanted(OUT, 1), Wanted(BATCHES, 1)])
        sink = once.TransactionalSink(
            OUT, BATCHES, KafkaTarget.parse(f"127.0.0.1:{gate}"), Checkpoint(tmp_path, "query"), {}
        )
        first, second = (token_of(number, "query", [f"{number}"]) for number in range(2))
        assert not sink.has(first)
        epoch = _epoch(broker)
        if is_answer_lost:
            proxy.swallow(ApiKey.END_TXN, 1_000)
        else:
            proxy.hold(ApiKey.END_TXN, ApiKey.LIST_TRANSACTIONS)
        # On a busy machine the time may be over before the end was even asked for.
        while not (proxy.swallowed or proxy.holding or sink.has(first)):
            with monkeypatch.context() as patched:
                patched.setattr(once, "_ANSWER_S", WAITED_S)
                with pytest.raises(AwayError):
                    sink.commit([(b"k", b"first", ())], first)
        proxy.cut()
        proxy.calm()

        is_committed = sink.has(first)
        assert is_committed or not is_answer_lost
        assert _epoch(broker) > epoch
        if not is_committed:
            sink.commit([(b"k", b"first", ())], first)
        sink.commit([(b"k", b"second", ())], second)
        assert [record.value for record in read_topic(broker.address, OUT)] == [b"first", b"second"]


def _epoch(broker: BrokerProcess) -> int:
    found = describe_transaction(KafkaTarget((("127.0.0.1", broker.port),)), BATCHES)
    assert found is not None
    return found.producer_epoch
