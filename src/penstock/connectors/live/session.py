"""One live client from its first message to its last: history, then what happens, then goodbye."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from penstock.client.history_reader import History, Lost
from penstock.config.setting import KIB, SECOND_MS
from penstock.connectors.live.backlog import Backlog
from penstock.connectors.live.envelope import Body, Message, notice, record_message
from penstock.connectors.live.hub import Hub, RefusedError
from penstock.connectors.live.limit import Limit
from penstock.connectors.live.position_token import Positions
from penstock.connectors.live.start_position import Start, Until
from penstock.connectors.live.stream import Client, Stream

SLOW, STOPPING, UNTIL = "slow", "stopping", "until"
_PIECE_BYTES = 64 * KIB
_READ_S = 0.1


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client asks for, with what its deliveries declare."""

    topics: tuple[str, ...]
    slow_client: str
    backlog_max: int
    start: Start
    until: Until | None
    key: bytes | None


class Wire(Protocol):
    """A connection to a client: SSE or WebSocket."""

    async def refuse(self, refused: RefusedError) -> None: ...
    async def open(self) -> None: ...
    async def send(self, messages: list[Message]) -> None: ...
    async def beat(self, token: str) -> None: ...
    async def finish(self, reason: str) -> None: ...
    async def watch(self) -> None:
        """Ends when the client has gone."""

    def write_now(self, message: Message) -> bool:
        """Write at once what needs no waiting; False if it cannot."""

    def abort(self) -> None: ...


class Session:
    """Runs in the task of its request."""

    def __init__(self, hub: Hub, ask: Ask, wire: Wire) -> None:
        self.ended = asyncio.Event()
        self._hub = hub
        self._ask = ask
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        backlog: Backlog[Message] = Backlog(ask.slow_client, ask.backlog_max, hub.config.live_backlog_bytes_max)
        self._client = Client(backlog, ask.key, lambda: self.end(SLOW), wire.write_now)
        self._reason = ""
        self._is_gone = False
        self._is_expired = False
        self._beat_is_due = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._watching: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None

    @property
    def sent(self) -> int:
        return self._client.sent

    async def run(self) -> None:
        """Serve the client until it leaves, is too slow, or the server stops."""
        try:
            await self._hub.ready(self._ask.topics)
            stream = self._hub.admit(self._ask.topics)
        except RefusedError as refused:
            self._hub.counts.refused += 1
            await self._wire.refuse(refused)
            return
        self._hub.sessions[self] = None
        try:
            await self._serve(stream)
        except RefusedError as refused:
            self._hub.counts.refused += 1
            await self._wire.refuse(refused)
        except OSError:
            self._is_gone = True  # the client left while it was written to
        except asyncio.CancelledError:
            if not self._is_expired or self._task is None:
                raise
            self._task.uncancel()
            self._wire.abort()
        finally:
            for timer in self._timers.values():
                timer.cancel()
            for task in (self._watching, self._settling):
                if task is not None:
                    task.cancel()
            stream.detach(self._client)
            self._hub.leave(stream)
            self._hub.counts.conflated += self._client.backlog.conflated
            self._hub.counts.sent += self._client.sent
            del self._hub.sessions[self]
            self.ended.set()

    def look(self) -> None:
        """Whether the client is too slow; called now and then."""
        self._client.look()

    def end(self, reason: str) -> None:
        """Say goodbye soon: what waits in the backlog is not sent any more."""
        if not self._reason:
            self._reason = reason
            self._hub.counts.disconnected_slow += reason == SLOW
            config = self._hub.config
            # A stream that ends by itself ends with messages, which a slow client may take its time for.
            within_ms = config.live_stall_ms if reason == UNTIL else config.live_goodbye_ms
            self._timers["end"] = self._loop.call_later(within_ms / SECOND_MS, self._expire)
            self._client.wake.set()

    async def _serve(self, stream: Stream) -> None:
        positions = await self._hub.positions_at(self._ask.start, stream)
        limit = await self._limit(positions, stream)
        token = stream.token_of(positions)
        missed = stream.since(positions)
        if limit is not None and limit.is_reached:
            await self._open(token)
        elif missed is None:
            await self._hub.take_slot()
            history = History(self._hub.queue, positions, self._hub.threads)
            try:
                await self._open(token)
                await self._catch_up(stream, positions, history)
            finally:
                self._hub.retire(history)
        else:
            stream.attach(self._client, stream.positions)
            await self._open(token)
            for piece in _pieces(self._messages(missed, stream, positions)):
                if not self._reason:
                    await self._send(piece)
        await self._live(stream)
        if not self._is_gone:
            token = self._client.token
            if limit is not None and self._reason == UNTIL:
                token = stream.token_of(limit.positions)
            await self._wire.send([notice("end", token, reason=self._reason)])
            await self._wire.finish(self._reason)

    async def _limit(self, positions: Positions, stream: Stream) -> Limit | None:
        """Where this stream ends, if its client said so."""
        until = self._ask.until
        if until is None:
            return None
        now_ms = time.time_ns() // 1_000_000
        limit = self._client.limit = await self._hub.limit(self._ask.start, until, positions, stream, now_ms)
        if isinstance(until.rest, int) and until.rest > now_ms:
            self._settling = self._loop.create_task(self._settle(limit, stream, until.rest, now_ms))
        return limit

    async def _settle(self, limit: Limit, stream: Stream, time_ms: int, now_ms: int) -> None:
        """Wait for a time, and end the stream with the last record before it."""
        await asyncio.sleep((time_ms - now_ms) / SECOND_MS)
        limit.settle(await self._hub.ends_at(time_ms, stream))
        self._client.wake.set()

    async def _open(self, token: str) -> None:
        await self._wire.open()
        self._watching = self._loop.create_task(self._wire.watch())
        self._watching.add_done_callback(self._leave)
        self._client.token = token
        await self._wire.send([notice("start", token, topics=list(self._ask.topics), resumes=bool(token))])

    async def _catch_up(self, stream: Stream, positions: Positions, history: History) -> None:
        """Read history until it meets the tail; the client is attached in the same moment."""
        try:
            while not (self._is_gone or self._reason):
                found = [item if isinstance(item, Lost) else Body(item) for item in await history.read(_READ_S)]
                for piece in _pieces(self._messages(found, stream, positions)):
                    async with asyncio.timeout(self._hub.config.live_stall_ms / SECOND_MS):
                        await self._send(piece)
                positions.update(history.positions)
                now = stream.positions
                for place in now.keys() - positions.keys():
                    positions[place] = 0
                    history.add(place, 0)
                limit = self._client.limit
                if limit is not None:
                    for place, offset in positions.items():
                        limit.reach(place, offset)
                    if limit.is_reached:
                        break
                    if limit.is_stale:
                        continue
                if all(positions[place] >= offset for place, offset in now.items()):
                    stream.attach(self._client, positions)
                    break
        except TimeoutError:
            self.end(SLOW)
            self._expire()
            await asyncio.sleep(0)

    def _messages(self, found: Iterable[Body | Lost], stream: Stream, positions: Positions) -> Iterator[Message]:
        for item in found:
            if isinstance(item, Lost):
                self._hub.counts.gaps += 1
                if item.missed is None and self._client.limit is not None:
                    self._client.limit.close((item.topic, item.partition))
                positions[item.topic, item.partition] = item.end
                facts = {"topic": item.topic, "partition": item.partition, "from": item.start, "to": item.end}
                yield notice("gap", stream.token_of(positions), **facts, missed=item.missed, reason=item.reason)
            else:
                record = item.record
                positions[record.topic, record.partition] = record.offset + 1
                if self._client.wants(record):
                    yield record_message(item, stream.token_of(positions))

    async def _live(self, stream: Stream) -> None:
        backlog, wake = self._client.backlog, self._client.wake
        self._plan_beat()
        self._client.is_slow = False
        limit = self._client.limit
        while not (self._is_gone or self._reason):
            if limit is not None and limit.is_reached and not len(backlog):
                self.end(UNTIL)
                break
            self._client.is_idle = not wake.is_set()
            await wake.wait()
            self._client.is_idle = False
            wake.clear()
            while not self._reason and (messages := backlog.take(_PIECE_BYTES)):
                if dropped := backlog.take_dropped():
                    self._hub.counts.dropped += dropped
                    messages.insert(0, notice("dropped", "", count=dropped))
                await self._send(messages)
            if self._beat_is_due:
                # Who filters by key hears little, and must not begin far back when it returns.
                token = stream.token if stream.is_settled(self._client) and not len(backlog) else ""
                self._client.is_slow = True  # until it has taken this
                await self._wire.beat(token)
                self._client.is_slow = False
                self._client.token = token or self._client.token
                self._plan_beat()
        self._client.is_slow = True

    async def _send(self, messages: list[Message]) -> None:
        self._client.is_slow = True  # until it has taken this
        await self._wire.send(messages)
        self._client.is_slow = False
        self._client.token = messages[-1].token or self._client.token
        self._client.sent += len(messages)

    def _plan_beat(self) -> None:
        self._beat_is_due = False
        beat_s = self._hub.config.live_beat_ms / SECOND_MS
        self._timers["beat"] = self._loop.call_later(beat_s, self._look_at_beat, self._client.sent)

    def _look_at_beat(self, sent: int) -> None:
        if self._client.sent != sent:
            self._plan_beat()
        else:
            self._beat_is_due = True
            self._client.wake.set()

    def _leave(self, _: asyncio.Task[None]) -> None:
        self._is_gone = True
        self._client.wake.set()

    def _expire(self) -> None:
        self._is_expired = True
        if self._task is not None:
            self._task.cancel()


def _pieces(messages: Iterator[Message]) -> Iterator[list[Message]]:
    piece: list[Message] = []
    size = 0
    for message in messages:
        piece.append(message)
        size += len(message.json)
        if size >= _PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece
