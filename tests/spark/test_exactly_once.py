"""delivery='exactly-once': whatever is killed at whatever moment, each result stands once in what is committed."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from driving.analyze import Analyze
from driving.records import Reader, Record, read, reading

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.exactly_once.batch_tokens import token_of
from penstock.analyze.exactly_once.transactional_sink import TransactionalSink
from penstock.client.topics import Wanted, provide_topics
from penstock.client.transactions import describe_transaction, open_transactions
from penstock.drills.broker_process import BrokerProcess
from penstock.errors import PenstockError
from penstock.guarantee import Queue, QueueKind
from penstock.kafka.target import KafkaTarget
from proof.oracle.kafka import KafkaNode

WITHIN_S = 240.0
VICTIMS = ("broker", "jvm", "driver")
CARDS = 7
NEW_MAX = 500  # records that a reader adds between two looks


class Sender:
    """Sends numbered events without a pause; one that was sent again is still stored once."""

    def __init__(self, queue: str) -> None:
        self._producer = Producer({"bootstrap.servers": queue, "enable.idempotence": True, "linger.ms": 5})
        self.sent = 0

    def send(self, count: int = 5) -> None:
        for n in range(self.sent, self.sent + count):
            event = {"id": f"n{n}", "card": f"card|{n % CARDS}", "n": n}
            self._producer.produce("payments", json.dumps(event).encode(), key=str(event["card"]))
        self.sent += count
        self._producer.poll(0)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send while something else is done; then all of it is stored."""
        done = threading.Event()

        def send_on() -> None:
            while not done.wait(0.1):
                self.send()

        thread = threading.Thread(target=send_on)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            assert self._producer.flush(WITHIN_S) == 0


def ids(found: list[Record]) -> list[str]:
    return [record.json["id"] for record in found]


def kill(victim: str, analyze: Analyze, broker: BrokerProcess | KafkaNode) -> None:
    """kill -9, and start again what was killed, as the supervisor does."""
    if victim == "broker":
        broker.kill()
        broker.start()
        return
    if victim == "jvm":
        os.kill(analyze.children[0], signal.SIGKILL)
        analyze.wait()
    else:
        analyze.kill()
    analyze.start()


def assert_each_once(queue: str, sent: int, repeat: str = "") -> None:
    """Every event has its result, no result stands twice, and the sums are those of what was sent."""
    wanted = sorted(f"n{n}" for n in range(sent))
    for topic in ("bookings", "doubled"):
        with reading(queue, topic) as reader:
            assert sorted(ids(reader.to_end())) == wanted, f"{topic}: {repeat}"
            keys = {(record.key, record.json["id"]) for record in reader.records}
        if topic == "bookings":  # its key is made of two columns, one of which holds the joint
            assert keys == {(rf"card\|{n % CARDS}|n{n}", f"n{n}") for n in range(sent)}
    with reading(queue, "balances") as reader:
        totals = [(record.json["card"], record.json["events"], record.json["total"]) for record in reader.to_end()]
    assert len({(card, events) for card, events, _ in totals}) == len(totals), repeat
    for card in range(CARDS):
        mine = range(card, sent, CARDS)
        assert max(found[1:] for found in totals if found[0] == f"card|{card}") == (len(mine), sum(mine))


def await_all(queue: str, sent: int) -> None:
    """Until every event has a result; whether it has one only is seen in the end."""
    for topic in ("bookings", "doubled"):
        read(queue, topic, lambda found: len(found) >= sent)
    most: dict[str, int] = {}

    def all_counted(found: list[Record]) -> bool:
        for record in found[-NEW_MAX:]:
            most[record.json["card"]] = max(most.get(record.json["card"], 0), record.json["events"])
        return sum(most.values()) == sent

    read(queue, "balances", all_counted)


def transactions_of(queue: str) -> list[str]:
    """What the coordinators know of each transaction, and what is open in the partitions that are written."""
    target = KafkaTarget.parse(queue)
    found = []
    for query in ("copy", "double", "total"):
        id = f"penstock.once.{query}.batches"
        try:
            described = describe_transaction(target, id)
            found.append(f"{id}: {described.transaction_state if described else 'unknown'}")
        except (PenstockError, OSError) as error:
            found.append(f"{id}: no answer ({error})")
    for topic in ("bookings", "doubled", "balances"):
        found += [f"{topic}: {one}" for one in open_transactions(target, topic)]
    return found


def await_all_on(broker: BrokerProcess | KafkaNode, analyze: Analyze, sent: int) -> None:
    """`await_all`, with what is known if the results do not come.

    Apache Kafka may keep a transaction in PrepareCommit after kill -9 until it starts again (KAFKA-16352 is of this
    kind). Then a start is what its operator has to do, and the results must still stand once.
    """
    try:
        await_all(broker.address, sent)
    except AssertionError as late:
        known = transactions_of(broker.address)
        report = f"{late}\n{known}\n{analyze.lines[-20:]}\n{analyze.said[-2000:]}"
        if not isinstance(broker, KafkaNode) or not any("Prepare" in one or "no answer" in one for one in known):
            raise AssertionError(report) from late
        warnings.warn(f"Apache Kafka did not end a transaction by itself: {report}", stacklevel=1)
        broker.stop()
        broker.start()
        await_all(broker.address, sent)


def until_more(reader: Reader) -> None:
    before = len(reader.records)
    reader.until(lambda found: len(found) > before)


@pytest.mark.timeout(1_200)
@pytest.mark.filterwarnings("default:Apache Kafka did not end:UserWarning")
@pytest.mark.parametrize("kind", ["penstock", "kafka"])
def test_each_result_stands_once_though_broker_jvm_and_driver_are_killed(
    kind: QueueKind, folder: Path, request: pytest.FixtureRequest
) -> None:
    """At random moments, and right behind a commit of which Spark has not heard yet, while events come."""
    broker = request.getfixturevalue("broker" if kind == "penstock" else "kafka_node")
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}"
    chance = random.Random(seed)
    queue = broker.address
    sender = Sender(queue)
    with Analyze("once.py", queue, folder / kind, Queue(kind)) as analyze, reading(queue, "bookings") as reader:
        with sender.sending():
            for number, victim in enumerate(VICTIMS):
                until_more(reader)
                if number < len(VICTIMS) - 1:
                    threading.Event().wait(chance.uniform(0, 2))
                kill(victim, analyze, broker)
        await_all_on(broker, analyze, sender.sent)
        # Spark does not know what such a query wrote: its sink tells.
        read(queue, "penstock.queries", lambda found: any(map(_tells_of_bookings, found)))
        assert analyze.stop() == 0
    assert_each_once(queue, sender.sent, repeat)


def _tells_of_bookings(record: Record) -> bool:
    return bool(record.json["writes"] == "bookings" and record.json["rows_out"])


def test_who_was_fenced_commits_nothing(broker: BrokerProcess, folder: Path) -> None:
    """An old driver that wakes up after its successor has begun: its batch is not seen, and it is told."""
    provide_topics(broker.target, [Wanted("out", 1), Wanted("out.batches", 1)])
    old, new = (
        TransactionalSink("out", "out.batches", broker.target, Checkpoint(folder, "none"), {}) for _ in range(2)
    )
    first, second = (token_of(number, "query", [f"{number}"]) for number in range(2))
    assert old.open() is None
    old.commit([(b"k", b"first", ())], first)
    assert new.open() == first
    with pytest.raises(PenstockError, match="fenced"):
        old.commit([(b"k", b"late", ())], second)
    new.commit([(b"k", b"second", ())], second)
    assert old.open() == second
    with reading(broker.address, "out") as reader:
        assert [record.value for record in reader.to_end()] == [b"first", b"second"]
