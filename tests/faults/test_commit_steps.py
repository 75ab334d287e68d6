"""kill -9 at every sync of a transaction, one after the other: it is committed as a whole, or not at all."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import create_topic

TOPIC, PARTITIONS = "pairs", 2
SYNCS_MAX = 30
WITHIN_S = 60.0
Start = Callable[..., BrokerProcess]


@contextmanager
def dying_in_sync(broker: BrokerProcess, number: int, strace: str) -> Iterator[Callable[[], bool]]:
    """The broker dies when it asks for its n-th sync from here on, and is started again; gives whether it did."""
    kill = f"inject=fdatasync:signal=SIGKILL:when={number}"
    command = [strace, "-f", "-p", str(broker.pid), "-e", "trace=fdatasync", "-e", kill]
    tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    died, done = threading.Event(), threading.Event()

    def revive(said: Iterator[str]) -> None:
        for _ in said:
            pass
        if not done.is_set():
            died.set()
            broker.kill()
            broker.start()

    reviver = threading.Thread(target=revive, args=(tracer.stderr,))
    reviver.start()
    try:
        yield died.is_set
    finally:
        done.set()
        tracer.terminate()
        tracer.wait(WITHIN_S)
        reviver.join(WITHIN_S)
        tracer.stderr.close()


def write_pair(owner: Producer, value: str) -> bool:
    """A record in each partition, in one transaction; whether it was said to be committed."""
    try:
        owner.begin_transaction()
        for partition in range(PARTITIONS):
            owner.produce(TOPIC, value.encode(), partition=partition)
        owner.commit_transaction(WITHIN_S)
    except KafkaException:
        with suppress(KafkaException):
            owner.abort_transaction(WITHIN_S)
        return False
    return True


def pairs_in(broker: BrokerProcess, partition: int) -> set[str]:
    """What a reader of committed records finds in a partition."""
    reader = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    reader.assign([TopicPartition(TOPIC, partition, 0)])
    found = set()
    try:
        while True:
            message = reader.poll(WITHIN_S)
            assert message is not None, "the end of the partition does not come"
            if message.error() is None:
                found.add((message.value() or b"").decode())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        reader.close()


@pytest.mark.timeout(600)
def test_a_transaction_is_whole_whichever_sync_the_broker_dies_in(
    start_broker: Start, need_tool: Callable[[str], str]
) -> None:
    """The first sync, the second, … until the transaction has no more of them."""
    # strace sees calls, not what the kernel does by itself; durable points are no part of a transaction.
    broker = start_broker(settings={"sync_in_kernel": False, "checkpoint_ms": 600_000})
    create_topic(broker.address, TOPIC, PARTITIONS)
    for number in range(1, SYNCS_MAX):
        owner = Producer({"bootstrap.servers": broker.address, "transactional.id": "owner", "log_level": 0})
        owner.init_transactions(WITHIN_S)
        with dying_in_sync(broker, number, need_tool("strace")) as died:
            is_committed = write_pair(owner, f"pair-{number}")
            # Before the tracer goes: who reads to the end has waited for the markers, whose syncs are the last.
            first, second = (pairs_in(broker, partition) for partition in range(PARTITIONS))
        assert first == second, f"torn by a kill at sync {number}"
        assert (f"pair-{number}" in first) >= is_committed, f"lost by a kill at sync {number}"
        if not died():
            assert number > 3, "records, decision and markers: it has more syncs than that"
            return
    raise AssertionError(f"a transaction has more than {SYNCS_MAX} syncs")
