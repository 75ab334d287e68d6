"""Everything live in this process: the topics followed, the streams, who is admitted, and the counts."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from penstock.client.history_reader import History, Lost
from penstock.client.offsets import EARLIEST, LATEST, NoSuchTopicError, Offsets
from penstock.client.record import Record
from penstock.client.tail import Tail
from penstock.config.edge import EdgeConfig
from penstock.config.setting import SECOND_MS
from penstock.connectors.live.envelope import Body
from penstock.connectors.live.limit import Limit
from penstock.connectors.live.position_token import Place, Positions
from penstock.connectors.live.recent import Recent
from penstock.connectors.live.start_position import Start, Until
from penstock.connectors.live.stream import Stream, TopicState
from penstock.kafka.target import KafkaTarget

_RETRY_AFTER_S = 1
_READ_S = 0.1
_LOOK_S = 0.5


class RefusedError(Exception):
    """A client that is not served now, or never as it asks."""

    def __init__(self, status: int, reason: str, retry_after_s: int | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class Counts:
    """What happened since the start."""

    clients: int = 0
    catch_ups: int = 0
    accepted: int = 0
    refused: int = 0
    sent: int = 0
    dropped: int = 0
    conflated: int = 0
    gaps: int = 0
    disconnected_slow: int = 0


class Watched(Protocol):
    """A session, as far as the hub must know it."""

    ended: asyncio.Event

    @property
    def sent(self) -> int: ...
    def end(self, reason: str) -> None: ...
    def look(self) -> None: ...


class Hub:
    """Follows every delivered topic once and hands records to the streams."""

    def __init__(self, topics: dict[str, bool], config: EdgeConfig, tail: Tail, queue: KafkaTarget) -> None:
        """`topics` are the delivered ones, and whether each can be resumed."""
        self.config = config
        self.queue = queue
        self.counts = Counts()
        self.sessions: dict[Watched, None] = {}
        self.threads = ThreadPoolExecutor(config.live_catch_ups_max, thread_name_prefix="catch-up")
        self._is_closing = False
        self._slots = asyncio.Semaphore(config.live_catch_ups_max)
        self._retiring: set[asyncio.Task[None]] = set()
        self._offsets = Offsets(queue)
        self._topics: dict[str, TopicState] = {}
        self._ready = {topic: asyncio.Event() for topic in topics}
        self._streams: dict[tuple[str, ...], Stream] = {}
        self._tasks = [asyncio.create_task(self._follow(tail, *topic)) for topic in topics.items()]
        self._tasks.append(asyncio.create_task(self._look()))

    def count(self) -> dict[str, int]:
        """Everything counted, with what the clients of now got so far."""
        sent = self.counts.sent + sum(session.sent for session in self.sessions)
        return {**dataclasses.asdict(self.counts), "sent": sent}

    async def close(self) -> None:
        """Tell everybody goodbye; returns when they are gone, or had their time for it."""
        self._is_closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in list(self.sessions):
            session.end("stopping")
        while self.sessions:
            await next(iter(self.sessions)).ended.wait()
        await asyncio.gather(*self._retiring)
        self.threads.shutdown(wait=False)

    async def ready(self, topics: Sequence[str]) -> None:
        """Wait until these topics are followed: a browser that is refused once does not come back."""
        away = [ready for topic in topics if not (ready := self._ready[topic]).is_set()]
        try:
            async with asyncio.timeout(self.config.live_catch_up_wait_ms / SECOND_MS):
                for ready in away:
                    await ready.wait()
        except TimeoutError:
            raise RefusedError(503, "the queue has not answered yet", _RETRY_AFTER_S) from None

    def admit(self, topics: Sequence[str]) -> Stream:
        """The stream of topics that are ready, with room for one more client; RefusedError else."""
        if self._is_closing:
            raise RefusedError(503, "this server is stopping", _RETRY_AFTER_S)
        if self.counts.clients >= self.config.live_clients_max:
            raise RefusedError(
                503, f"there are {self.counts.clients} live clients, and no room for more", _RETRY_AFTER_S
            )
        names = tuple(sorted(topics))
        if names not in self._streams:
            self._streams[names] = Stream([self._topics[name] for name in names])
        stream = self._streams[names]
        stream.members += 1
        self.counts.clients += 1
        self.counts.accepted += 1
        return stream

    def leave(self, stream: Stream) -> None:
        """One client less; call it once for each that was admitted."""
        self.counts.clients -= 1
        stream.members -= 1
        if not stream.members:
            del self._streams[tuple(topic.topic for topic in stream.topics)]

    async def positions_at(self, start: Start, stream: Stream) -> Positions:
        """The offsets to begin with."""
        now = stream.positions
        given = {place: offset for place, offset in (start.positions or {}).items() if place in now}
        rest = [place for place in now if place not in given]
        if start.rest == "now" or not rest:
            return {place: given.get(place, offset) for place, offset in now.items()}
        try:
            async with asyncio.timeout(self.config.store_deadline_ms / SECOND_MS):
                if isinstance(start.rest, int) and start.rest < 0:
                    begins = await self._offsets.at(EARLIEST, rest)
                    found = {place: max(begins[place], now[place] + start.rest) for place in rest}
                else:
                    found = await self._offsets.at(EARLIEST if start.rest == "beginning" else start.rest, rest)
        except (TimeoutError, NoSuchTopicError):
            raise RefusedError(503, "the queue does not answer for this topic", _RETRY_AFTER_S) from None
        return found | given

    async def limit(self, start: Start, until: Until, positions: Positions, stream: Stream, now_ms: int) -> Limit:
        """Where the stream of a client ends that began at `positions`; RefusedError if there is no such partition."""
        places = list(stream.positions)
        named = until.positions or {}
        if unknown := [place for place in named if place not in places]:
            topic, partition = unknown[0]
            last = max(number for name, number in places if name == topic)
            raise RefusedError(400, f"until: topic {topic} has no partition {partition}, only 0 to {last}")
        try:
            async with asyncio.timeout(self.config.store_deadline_ms / SECOND_MS):
                latest = await self._offsets.at(LATEST, places)
                if until.rest == "now":
                    # The tail may be a moment behind the queue: what begins now and ends now is empty.
                    empty = {place: at for place, at in positions.items() if place not in (start.positions or {})}
                    ends = latest | empty if start.rest == "now" else latest
                    return Limit(positions, latest, ends | named)
                if until.rest > now_ms:
                    return Limit(positions, latest, None, until.rest)
                return Limit(positions, latest, await self._offsets.at(until.rest, places))
        except (TimeoutError, NoSuchTopicError):
            raise RefusedError(503, "the queue does not answer for this topic", _RETRY_AFTER_S) from None

    async def ends_at(self, time_ms: int, stream: Stream) -> Positions:
        """The first offsets as young as a time that has come. A deleted topic is left out, and the others are not."""
        places: dict[str, list[Place]] = {}
        for place in stream.positions:
            places.setdefault(place[0], []).append(place)

        async def ends(of_topic: list[Place]) -> Positions:
            try:
                return await self._offsets.at(time_ms, of_topic)
            except NoSuchTopicError:
                return {}

        found = await asyncio.gather(*map(ends, places.values()))
        return {place: end for of_topic in found for place, end in of_topic.items()}

    async def take_slot(self) -> None:
        """Room for one reader of history; RefusedError when none becomes free in time."""
        try:
            async with asyncio.timeout(self.config.live_catch_up_wait_ms / SECOND_MS):
                await self._slots.acquire()
        except TimeoutError:
            raise RefusedError(
                503, f"{self.config.live_catch_ups_max} clients read history already: try again", _RETRY_AFTER_S
            ) from None
        self.counts.catch_ups += 1

    def retire(self, history: History) -> None:
        """Close a reader behind its client's back; its slot is free when that is done."""

        async def close() -> None:
            try:
                await history.close()
            finally:
                self.counts.catch_ups -= 1
                self._slots.release()

        task = asyncio.create_task(close())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _follow(self, tail: Tail, topic: str, resumes: bool) -> None:
        following = await tail.follow(topic, self._take, partial(self._reach, topic))
        recent = Recent(following.positions, self.config.live_recent_max, self.config.live_recent_bytes_max)
        self._topics[topic] = TopicState(topic, resumes, recent)
        places = {(topic, partition): offset for partition, offset in following.positions.items()}
        if resumes and self.config.live_recent_max:
            recent.add_before(await self._before(places))
        self._ready[topic].set()

    async def _before(self, ends: Positions) -> list[Body]:
        """The last records before `ends`: after a restart all clients come back at once, and want these."""
        each = self.config.live_recent_max // max(1, len(ends))
        starts = await self._offsets.at(EARLIEST, ends)
        history = History(self.queue, {p: max(starts[p], end - each) for p, end in ends.items()}, self.threads)
        found: list[Body] = []
        try:
            while any(history.positions[place] < end for place, end in ends.items()):
                for item in await history.read(_READ_S):
                    if isinstance(item, Lost):
                        found = [body for body in found if body.record.partition != item.partition]
                    elif item.offset < ends[item.topic, item.partition]:
                        found.append(Body(item))
        finally:
            await history.close()
        return found

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            for session in list(self.sessions):
                session.look()

    def _take(self, records: Iterable[Record]) -> None:
        for record in records:
            topic = self._topics[record.topic]
            body = Body(record)
            is_again = topic.advance(body)
            for stream in self._streams.values():
                if topic in stream.topics:
                    if is_again:
                        stream.begin_again((record.topic, record.partition))
                    stream.publish(body)

    def _reach(self, name: str, partition: int, end: int) -> None:
        """The tail has seen the end of a partition."""
        topic = self._topics.get(name)
        if topic is None:
            return
        topic.reach(partition, end)
        for stream in self._streams.values():
            if topic in stream.topics:
                stream.reach((name, partition), end)
