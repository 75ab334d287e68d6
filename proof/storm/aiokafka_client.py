"""aiokafka in the storm; its loop turns while somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import aiokafka
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from penstock.assure.history import Outcome
from penstock.drills.recording_clients import Place
from penstock.errors import PenstockError
from proof.storm.client_library import (
    BACKOFF_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    TRANSACTION_MS,
    OnPlaces,
    OnSettle,
    Reading,
    Records,
)

ANSWER_S = 10.0
POLLED_MAX = 200
_T = TypeVar("_T")


class _Loop:
    """An event loop that runs as long as a call lasts."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def run(self, doing: Coroutine[Any, Any, _T], seconds: float = ANSWER_S) -> _T:
        return self.loop.run_until_complete(asyncio.wait_for(doing, seconds))


class AioWriting:
    """A producer, as `Writing` says."""

    def __init__(self, address: str, name: str, on_settle: OnSettle, owner: str | None) -> None:
        self._on_settle = on_settle
        self._loop = _Loop()
        self._open: list[asyncio.Future[Any]] = []
        settings: dict[str, Any] = {"enable_idempotence": True}
        if owner is not None:
            settings = {"transactional_id": owner, "transaction_timeout_ms": TRANSACTION_MS}
        self._client: Any = None
        self._loop.run(
            self._start(bootstrap_servers=address, client_id=name, retry_backoff_ms=BACKOFF_MS, **settings), 30
        )

    async def _start(self, **settings: Any) -> None:
        self._client = aiokafka.AIOKafkaProducer(**settings)
        await self._client.start()

    def send(self, place: Place, value: str) -> None:
        sending = self._client.send(place.topic, value.encode(), partition=place.partition)
        future = self._loop.run(sending, 60)
        future.add_done_callback(partial(self._on_done, place, value))
        self._open.append(future)

    def turn(self, seconds: float) -> None:
        self._loop.run(asyncio.sleep(seconds), seconds + ANSWER_S)
        self._open = [future for future in self._open if not future.done()]

    def flush(self, seconds: float) -> None:
        self._loop.run(self._client.flush(), seconds)
        for future in self._open:
            future.result()
        self._open = []

    def begin(self) -> None:
        self._loop.run(self._client.begin_transaction())

    def send_positions(self, positions: Mapping[Place, int], reader: Reading) -> None:
        where = {aiokafka.TopicPartition(*place): offset for place, offset in positions.items()}
        self._loop.run(self._client.send_offsets_to_transaction(where, reader.group))

    def commit(self) -> None:
        self._loop.run(self._client.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._client.abort_transaction())

    def _on_done(self, place: Place, value: str, future: asyncio.Future[Any]) -> None:
        if future.cancelled() or future.exception() is not None:
            self._on_settle(place, value, Outcome.UNKNOWN, None)
        else:
            told = future.result()
            self._on_settle(place, value, Outcome.OK, told.offset if told.offset >= 0 else None)


class AioReading:
    """A consumer, as `Reading` says."""

    def __init__(self, address: str, name: str, group: str, committed: bool) -> None:
        self.group = group
        self._loop = _Loop()
        self._client: Any = None
        self._starting: asyncio.Future[Any] | None = None
        self._loop.run(
            self._make(
                bootstrap_servers=address,
                client_id=name,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed" if committed else "read_uncommitted",
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=HEARTBEAT_MS,
                fetch_max_wait_ms=100,
                retry_backoff_ms=BACKOFF_MS,
                partition_assignment_strategy=(RoundRobinPartitionAssignor,),
            )
        )

    async def _make(self, **settings: Any) -> None:
        self._client = aiokafka.AIOKafkaConsumer(**settings)

    def subscribe(self, topics: Sequence[str], on_given: OnPlaces, on_taken: OnPlaces) -> None:
        class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # ships no types
            def on_partitions_assigned(self, assigned: Any) -> None:
                on_given([Place(part.topic, part.partition) for part in sorted(assigned)])

            def on_partitions_revoked(self, revoked: Any) -> None:
                on_taken([Place(part.topic, part.partition) for part in sorted(revoked)])

        async def begin() -> None:
            self._client.subscribe(list(topics), listener=Listener())
            # Its start waits for the first assignment, and so for members that wait for this one.
            self._starting = asyncio.ensure_future(self._client.start())

        self._loop.run(begin())

    def assign(self, positions: Mapping[Place, int]) -> None:
        async def begin() -> None:
            self._client.assign([aiokafka.TopicPartition(*place) for place in positions])
            if self._starting is None:
                self._starting = asyncio.ensure_future(self._client.start())
                await self._starting
            for place, offset in positions.items():
                self._client.seek(aiokafka.TopicPartition(*place), offset)

        self._loop.run(begin(), 3 * ANSWER_S)

    def poll(self, seconds: float) -> dict[Place, Records]:
        async def work() -> Any:
            if self._starting is not None and not self._starting.done():
                await asyncio.wait([self._starting], timeout=seconds)
                return {}
            if self._starting is not None:
                self._starting.result()
            return await self._client.getmany(timeout_ms=int(seconds * 1000), max_records=POLLED_MAX)

        found = self._loop.run(work(), seconds + 3 * ANSWER_S)
        return {
            Place(part.topic, part.partition): [(record.offset, record.value.decode()) for record in records]
            for part, records in found.items()
        }

    def commit(self, positions: Mapping[Place, int]) -> None:
        where = {aiokafka.TopicPartition(*place): offset for place, offset in positions.items()}
        self._loop.run(self._client.commit(where))

    def position_of_group(self, place: Place) -> int | None:
        async def ask() -> Any:
            if self._starting is None:
                self._client.assign([aiokafka.TopicPartition(*place)])
                self._starting = asyncio.ensure_future(self._client.start())
                await self._starting
            return await self._client.committed(aiokafka.TopicPartition(*place))

        found: int | None = self._loop.run(ask(), 3 * ANSWER_S)
        return found

    def close(self) -> None:
        self._loop.run(self._client.stop())


def write(address: str, name: str, on_settle: OnSettle, owner: str | None = None) -> AioWriting:
    return AioWriting(address, name, on_settle, owner)


def read(address: str, name: str, group: str, *, committed: bool = False, newer: bool = False) -> AioReading:
    if newer:
        raise PenstockError("aiokafka does not speak the newer protocol of groups")
    return AioReading(address, name, group, committed)
