"""Following a topic from its end: every record once, whatever happens to the broker."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.client.record import Record
from penstock.client.tail import Tail
from penstock.drills.broker_process import BrokerProcess

DEADLINE_S = 60.0

admin: Any = importlib.import_module("confluent_kafka.admin")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", tmp_path) as node:
        yield node


def create(broker: BrokerProcess, topic: str, partitions: int = 1) -> None:
    client = admin.AdminClient({"bootstrap.servers": broker.address})
    client.create_topics([admin.NewTopic(topic, partitions, 1)])[topic].result(DEADLINE_S)


class Sender:
    """Writes numbered records and waits until they are acknowledged."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0, "enable.idempotence": True})
        self.sent: list[bytes] = []

    def send(self, topic: str, count: int, partition: int = 0) -> None:
        for _ in range(count):
            value = b"%d" % len(self.sent)
            self.sent.append(value)
            self._producer.produce(topic, value, b"k", partition, headers=[("penstock-id", value)])
        assert self._producer.flush(DEADLINE_S) == 0


class Heard:
    """What a follower got."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._changed = asyncio.Event()

    def take(self, records: list[Record]) -> None:
        self.records += records
        self._changed.set()

    @property
    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records]

    async def until(self, count: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.records) < count:
                self._changed.clear()
                await self._changed.wait()


def following(broker: BrokerProcess, test: Callable[[Tail], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        failures: list[BaseException] = []
        tail = Tail(broker.target, on_failure=failures.append, refresh_s=0.1)
        try:
            await test(tail)
        finally:
            await tail.close()
        assert not failures

    asyncio.run(run())


def test_records_from_the_end_on_arrive_with_everything_they_carry(broker: BrokerProcess) -> None:
    """What was there before is not heard; what comes is, with key, headers, time and offset."""
    create(broker, "t")
    sender = Sender(broker)
    sender.send("t", 3)

    async def test(tail: Tail) -> None:
        heard = Heard()
        started = await tail.follow("t", heard.take)
        assert started.positions == {0: 3}
        await asyncio.to_thread(sender.send, "t", 5)
        await heard.until(5)
        assert heard.values == sender.sent[3:]
        first = heard.records[0]
        assert (first.topic, first.partition, first.offset, first.key) == ("t", 0, 3, b"k")
        assert first.headers == [("penstock-id", b"3")]
        assert first.timestamp_ms > 1_700_000_000_000

    following(broker, test)


def test_a_killed_broker_costs_no_record_and_repeats_none(broker: BrokerProcess) -> None:
    """Three times killed and started again, with records between: offsets go up by one."""
    create(broker, "t", 2)
    sender = Sender(broker)

    async def test(tail: Tail) -> None:
        heard = Heard()
        await tail.follow("t", heard.take)
        for _ in range(3):
            await asyncio.to_thread(sender.send, "t", 10, 0)
            await asyncio.to_thread(sender.send, "t", 10, 1)
            broker.kill()
            await asyncio.to_thread(broker.start)
        await asyncio.to_thread(sender.send, "t", 1, 0)
        await heard.until(61)
        for partition, count in ((0, 31), (1, 30)):
            assert [r.offset for r in heard.records if r.partition == partition] == list(range(count))
        assert sorted(map(int, filter(None, heard.values))) == list(range(61))

    following(broker, test)


def test_followers_of_one_topic_begin_where_they_came_and_end_when_they_stop(broker: BrokerProcess) -> None:
    """Each gets every record from its own position on; one that stopped gets none, the other goes on."""
    create(broker, "t")
    sender = Sender(broker)

    async def test(tail: Tail) -> None:
        first, second = Heard(), Heard()
        one = await tail.follow("t", first.take)
        await asyncio.to_thread(sender.send, "t", 2)
        await first.until(2)
        two = await tail.follow("t", second.take)
        assert two.positions == {0: 2}
        await asyncio.to_thread(sender.send, "t", 2)
        await first.until(4)
        assert second.values == sender.sent[2:]
        one.stop()
        await asyncio.to_thread(sender.send, "t", 1)
        await second.until(3)
        assert len(first.records) == 4
        two.stop()
        third = Heard()
        again = await tail.follow("t", third.take)
        assert again.positions == {0: 5}
        await asyncio.to_thread(sender.send, "t", 1)
        await third.until(1)
        assert third.values == sender.sent[5:]

    following(broker, test)


def test_a_topic_made_later_and_partitions_added_later_are_found(broker: BrokerProcess) -> None:
    """Waiting for a topic ends when it is made; a new partition is heard from its first record."""
    sender = Sender(broker)

    async def test(tail: Tail) -> None:
        heard = Heard()
        waiting = asyncio.create_task(tail.follow("t", heard.take))
        create(broker, "t")
        started = await asyncio.wait_for(waiting, DEADLINE_S)
        assert started.positions == {0: 0}
        client = admin.AdminClient({"bootstrap.servers": broker.address})
        client.create_partitions([admin.NewPartitions("t", 3)])["t"].result(DEADLINE_S)
        await asyncio.to_thread(sender.send, "t", 4, 2)
        await heard.until(4)
        assert [(r.partition, r.offset) for r in heard.records] == [(2, 0), (2, 1), (2, 2), (2, 3)]

    following(broker, test)


def test_following_goes_on_in_a_topic_that_was_deleted_and_made_again(broker: BrokerProcess) -> None:
    """The offset is out of range then: everything in the new topic is new."""
    create(broker, "t")
    sender = Sender(broker)
    sender.send("t", 5)

    async def test(tail: Tail) -> None:
        heard = Heard()
        await tail.follow("t", heard.take)
        client = admin.AdminClient({"bootstrap.servers": broker.address})
        client.delete_topics(["t"])["t"].result(DEADLINE_S)
        create(broker, "t")
        await asyncio.to_thread(Sender(broker).send, "t", 2)
        await heard.until(2)
        assert [r.offset for r in heard.records] == [0, 1]

    following(broker, test)


def test_following_that_began_while_the_broker_was_away_begins_when_it_is_back(broker: BrokerProcess) -> None:
    """The call waits; the end is asked for when somebody can answer."""
    create(broker, "t")
    sender = Sender(broker)
    sender.send("t", 2)
    broker.kill()

    async def test(tail: Tail) -> None:
        heard = Heard()
        waiting = asyncio.create_task(tail.follow("t", heard.take))
        await asyncio.to_thread(broker.start)
        started = await asyncio.wait_for(waiting, DEADLINE_S)
        assert started.positions == {0: 2}
        await asyncio.to_thread(sender.send, "t", 1)
        await heard.until(1)
        assert heard.values == [b"2"]

    following(broker, test)
