"""Follows topics from their end: one consumer and one thread for everybody in this process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from penstock.client.factory import reader_settings
from penstock.client.offsets import EARLIEST, LATEST, NoSuchTopicError, Offsets, Place
from penstock.client.record import Record, record_of
from penstock.kafka.target import KafkaTarget

OnRecords = Callable[[list[Record]], None]
OnEnd = Callable[[int, int], None]
OnFailure = Callable[[BaseException], None]

_POLL_S = 0.05  # how long a new topic may wait for the thread
_BATCH_MAX = 2_000
_BATCHES_MAX = 4  # handed to the loop and not yet taken; then the queue keeps the rest
_BUFFERED_KIB = 4 * 1024
_LEADER_S = 1.0
_REFRESH_S = 5.0  # how soon a new partition is found


class Following:
    """One caller's view of a topic; gets every record from `positions` on, once."""

    def __init__(
        self, tail: Tail, topic: str, on_records: OnRecords, on_end: OnEnd | None, positions: Mapping[int, int]
    ) -> None:
        self.topic = topic
        self.positions = dict(positions)
        self._tail = tail
        self._on_records = on_records
        self._on_end = on_end

    def take(self, records: list[Record]) -> None:
        self._on_records(records)

    def reach(self, ends: Mapping[int, int]) -> None:
        if self._on_end is not None:
            for partition, offset in ends.items():
                self._on_end(partition, offset)

    def stop(self) -> None:
        """No records from now on."""
        self._tail._stop(self)  # one thing in two classes


class _Topic:
    """A topic that somebody follows: who, and up to where records were handed out."""

    def __init__(self) -> None:
        self.followings: list[Following] = []
        self.next: dict[int, int] = {}
        self.known = asyncio.Event()


class Tail:
    """All that is called from outside runs on the loop; only `_read` runs in the thread."""

    def __init__(self, queue: KafkaTarget, *, on_failure: OnFailure, refresh_s: float = _REFRESH_S) -> None:
        """`on_failure` is called on the loop when nobody can hear anything more: end the process."""
        from confluent_kafka import Consumer

        self._on_failure = on_failure
        self._consumer: Any = Consumer(reader_settings(queue, buffered_kib=_BUFFERED_KIB))
        self._offsets = Offsets(queue)
        self._loop = asyncio.get_running_loop()
        self._refresh_s = refresh_s
        self._topics: dict[str, _Topic] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._orders: deque[tuple[bool, dict[Place, int]]] = deque()
        self._room = threading.Semaphore(_BATCHES_MAX)
        self._closing = False
        self._thread = threading.Thread(target=self._read, name="tail", daemon=True)
        self._thread.start()
        self._run(self._refresh())

    async def follow(self, topic: str, on_records: OnRecords, on_end: OnEnd | None = None) -> Following:
        """Call `on_records` on the loop with every record from now on; waits for the queue, and for the topic to be.

        `on_end` is told each end of a partition that was reached: records may be missing before it, as where a
        transaction ended.
        """
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _Topic()
            self._run(self._start(topic, found))
        await found.known.wait()
        following = Following(self, topic, on_records, on_end, found.next)
        found.followings.append(following)
        return following

    async def close(self) -> None:
        """Stop the thread and everything under way."""
        for task in list(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._closing = True
        self._room.release()
        await asyncio.to_thread(self._thread.join)
        self._topics.clear()

    async def _start(self, topic: str, found: _Topic) -> None:
        while True:
            try:
                places = [(topic, partition) for partition in await self._offsets.partitions(topic)]
                self._assign(found, await self._offsets.at(LATEST, places))
            except NoSuchTopicError:
                await asyncio.sleep(self._refresh_s)
            else:
                return found.known.set()

    def _lose(self, topic: str, partition: int) -> None:
        found = self._topics.get(topic)
        if found is not None and found.known.is_set():
            self._run(self._start_again(topic, partition, found))

    async def _start_again(self, topic: str, partition: int, found: _Topic) -> None:
        """What stood at our offset is gone, by retention or with its topic: everything that is there now is new."""
        with contextlib.suppress(NoSuchTopicError):
            starts = await self._offsets.at(EARLIEST, [(topic, partition)])
            if self._topics.get(topic) is found:
                self._orders.append((False, starts))
                self._assign(found, starts)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (wrong := task.exception()) is not None:
            self._on_failure(wrong)

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._refresh_s)
            for topic, found in list(self._topics.items()):
                if not found.known.is_set():
                    continue
                with contextlib.suppress(NoSuchTopicError):
                    new = [p for p in await self._offsets.partitions(topic) if p not in found.next]
                    # A partition that came later is new as a whole.
                    starts = await self._offsets.at(EARLIEST, [(topic, p) for p in new])
                    if self._topics.get(topic) is found:  # everybody may have left meanwhile
                        self._assign(found, starts)

    def _assign(self, found: _Topic, starts: dict[Place, int]) -> None:
        found.next.update({partition: offset for (_, partition), offset in starts.items()})
        if starts:
            self._orders.append((True, starts))

    def _stop(self, following: Following) -> None:
        found = self._topics.get(following.topic)
        if found is None or following not in found.followings:
            return
        found.followings.remove(following)
        if not found.followings:
            del self._topics[following.topic]
            self._orders.append((False, {(following.topic, partition): 0 for partition in found.next}))

    def _take(self, batch: dict[str, list[Record]], ends: dict[str, dict[int, int]]) -> None:
        """On the loop: what the thread read goes to everybody who follows."""
        self._room.release()
        for topic, records in batch.items():
            found = self._topics.get(topic)
            if found is None:
                continue
            fresh = [r for r in records if r.offset >= found.next.get(r.partition, r.offset + 1)]
            for record in fresh:
                found.next[record.partition] = record.offset + 1
            for following in list(found.followings) if fresh else ():
                following.take(fresh)
        for topic, reached in ends.items():
            for following in list(self._topics[topic].followings) if topic in self._topics else ():
                following.reach(reached)

    def _read(self) -> None:
        try:
            self._read_on()
        except Exception as wrong:  # noqa: BLE001  # the top of a thread: without a word all would wait for ever
            self._on_loop(self._on_failure, wrong)
        finally:
            self._consumer.close()

    def _read_on(self) -> None:
        while not self._closing:
            while self._orders:
                self._obey(*self._orders.popleft())
            first = self._consumer.poll(_POLL_S)
            if first is None:
                continue
            batch: dict[str, list[Record]] = {}
            ends: dict[str, dict[int, int]] = {}
            for message in [first, *self._consumer.consume(_BATCH_MAX, 0)]:
                if message.error() is None:
                    batch.setdefault(message.topic(), []).append(record_of(message))
                elif message.error().name() == "_PARTITION_EOF":
                    ends.setdefault(message.topic(), {})[message.partition()] = message.offset()
                elif message.error().name() == "_AUTO_OFFSET_RESET":
                    self._on_loop(self._lose, message.topic(), message.partition())
            if batch or ends:
                self._room.acquire()
                self._on_loop(self._take, batch, ends)

    def _on_loop(self, call: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(call, *args)

    def _obey(self, is_start: bool, places: dict[Place, int]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        if is_start:
            # The library looks for the leader of a topic that it does not know only once a second.
            for topic in dict.fromkeys(topic for topic, _ in places):
                with contextlib.suppress(KafkaException):
                    self._consumer.list_topics(topic, timeout=_LEADER_S)
            self._consumer.incremental_assign([TopicPartition(*place, offset) for place, offset in places.items()])
        else:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in places])
