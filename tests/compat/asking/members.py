"""Consumers in groups behind one face: what each is given, what it reads, how far it has come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, Protocol

import aiokafka  # type: ignore[import-untyped]  # ships no types
import confluent_kafka

from asking.clients import kafka
from asking.connection import DEADLINE_S

_POLL_S = 0.1


_SHARING = (
    confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS,
    confluent_kafka.KafkaError.ILLEGAL_GENERATION,
    confluent_kafka.KafkaError.UNKNOWN_MEMBER_ID,
    confluent_kafka.KafkaError.STALE_MEMBER_EPOCH,
)


class Read(NamedTuple):
    """A record as a member read it."""

    topic: str
    partition: int
    offset: int
    value: str


class Member(Protocol):
    """One consumer in a group, from the beginning where the group has no position; it commits when told."""

    def poll(self) -> list[Read]: ...

    def assignment(self) -> set[tuple[str, int]]: ...

    def commit(self) -> bool:
        """All that was read so far, of what it has; False if the group shares anew: poll, and commit again."""

    def close(self) -> None: ...


class ConfluentMember:
    def __init__(
        self, address: str, group: str, topics: Sequence[str], *, instance: str | None = None, **settings: Any
    ) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        if instance is not None:
            given["group.instance.id"] = instance
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
            }
            | given
        )
        self.revoked: list[int] = []
        self._consumer.subscribe(list(topics), on_revoke=lambda _, parts: self.revoked.append(len(parts)))

    def poll(self) -> list[Read]:
        messages = self._consumer.consume(500, _POLL_S)
        for message in messages:
            assert message.error() is None, message.error()
        return [Read(str(m.topic()), m.partition() or 0, m.offset() or 0, _text(m.value())) for m in messages]

    def assignment(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def commit(self) -> bool:
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in _SHARING:
                raise
            return False
        return True

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonMember:
    def __init__(self, address: str, group: str, topics: Sequence[str], *, instance: str | None = None) -> None:
        settings = {} if instance is None else {"group_instance_id": instance}
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=500,
            **settings,
        )
        if topics[0].startswith("^"):
            self._consumer.subscribe(pattern=topics[0])
        else:
            self._consumer.subscribe(list(topics))

    def poll(self) -> list[Read]:
        found = self._consumer.poll(timeout_ms=int(_POLL_S * 1000))
        # kafka-python 3.0.12 forgets a join for the sake of changed topics that takes longer than one poll, and then
        # stands still without a heartbeat, on Kafka as here.
        coordinator = self._consumer._coordinator
        if coordinator.rejoining and not coordinator.need_rejoin():
            coordinator.request_rejoin()
        return [Read(m.topic, m.partition, m.offset, _text(m.value)) for part in found.values() for m in part]

    def assignment(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def commit(self) -> bool:
        try:
            self._consumer.commit()
        except (kafka.errors.RebalanceInProgressError, kafka.errors.CommitFailedError):
            return False
        return True

    def close(self) -> None:
        self._consumer.close()


class AiokafkaMember:
    """Its loop turns while it is polled."""

    def __init__(self, address: str, group: str, topics: Sequence[str], *, instance: str | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._start(address, group, topics, instance))

    async def _start(self, address: str, group: str, topics: Sequence[str], instance: str | None) -> None:
        self._consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=address,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=500,
        )
        if topics[0].startswith("^"):
            self._consumer.subscribe(pattern=topics[0])
        else:
            self._consumer.subscribe(list(topics))
        # Its start waits for the first assignment, and so for members that wait for this one.
        self._starting = asyncio.ensure_future(self._consumer.start())

    def poll(self) -> list[Read]:
        async def work() -> Any:
            if not self._starting.done():
                await asyncio.wait([self._starting], timeout=_POLL_S)
                return {}
            self._starting.result()
            return await self._consumer.getmany(timeout_ms=int(_POLL_S * 1000))

        found = self._loop.run_until_complete(work())
        return [Read(m.topic, m.partition, m.offset, _text(m.value)) for part in found.values() for m in part]

    def assignment(self) -> set[tuple[str, int]]:
        return {(place.topic, place.partition) for place in self._consumer.assignment()}

    def commit(self) -> bool:
        try:
            self._loop.run_until_complete(self._consumer.commit())
        except aiokafka.errors.CommitFailedError:
            return False
        return True

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


MEMBERS: dict[str, Callable[..., Member]] = {
    "confluent": ConfluentMember,
    "confluent-newer-protocol": partial(ConfluentMember, group_protocol="consumer"),
    "kafka-python": KafkaPythonMember,
    "aiokafka": AiokafkaMember,
}


def poll_until(members: Sequence[Member], is_done: Callable[[list[Read]], bool]) -> list[Read]:
    """Poll all members at once, as programs of their own would, until what they read, or have, is enough."""
    found: list[Read] = []
    deadline = time.monotonic() + 2 * DEADLINE_S
    with ThreadPoolExecutor(len(members)) as pool:
        while not is_done(found):
            assert time.monotonic() < deadline, f"{len(found)} records came; {[m.assignment() for m in members]}"
            for read in pool.map(lambda member: member.poll(), members):
                found += read
    return found


def read_and_commit(members: Sequence[Member], wanted: set[str]) -> None:
    """Poll and commit until these values are committed, however often the group shares anew meanwhile."""
    committed: set[str] = set()
    unconfirmed: list[list[Read]] = [[] for _ in members]

    def turn(member: Member, mine: list[Read]) -> None:
        mine += member.poll()
        places = member.assignment()
        if mine and member.commit():
            # What stands in a partition that it has no more is read again by whoever has it.
            committed.update(read.value for read in mine if (read.topic, read.partition) in places)
            mine.clear()

    deadline = time.monotonic() + 2 * DEADLINE_S
    with ThreadPoolExecutor(len(members)) as pool:
        while not committed >= wanted:
            assert time.monotonic() < deadline, f"committed: {sorted(committed)}"
            list(pool.map(turn, members, unconfirmed))


def is_shared(members: Sequence[Member], count: int) -> bool:
    """Whether `count` partitions are given to the members, each to one, and everybody has some."""
    given = [member.assignment() for member in members]
    return all(given) and sum(map(len, given)) == count == len(set.union(*given))


def write(address: str, topic: str, values: Iterable[str], partition: int | None = None) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    for number, value in enumerate(values):
        place = {} if partition is None else {"partition": partition}
        producer.produce(topic, value, key=str(number), **place)  # type: ignore[arg-type]  # a partition or nothing
    assert producer.flush(DEADLINE_S) == 0


def _text(value: Any) -> str:
    return bytes(value or b"").decode()
