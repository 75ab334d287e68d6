"""Live clients of the same topics: each message is encoded once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.client.record import Record
from penstock.connectors.live.backlog import Backlog
from penstock.connectors.live.envelope import Body, Message, record_message
from penstock.connectors.live.limit import Limit
from penstock.connectors.live.position_token import Place, Positions, encode_token, encode_topic
from penstock.connectors.live.recent import Recent


class TopicState:
    """Up to where the tail has handed out a topic, and the latest of it."""

    def __init__(self, topic: str, resumes: bool, recent: Recent) -> None:
        self.topic = topic
        self.resumes = resumes
        self.recent = recent
        self.next = dict(sorted(recent.starts.items()))
        self.text = encode_topic(topic, self.next)
        self._ends: dict[int, int] = {}  # of partitions whose end the tail has seen: offsets without a record count

    @property
    def reached(self) -> dict[int, int]:
        """Up to where nothing is left to hand out, in each partition."""
        return {partition: max(offset, self._ends.get(partition, 0)) for partition, offset in self.next.items()}

    def reach(self, partition: int, end: int) -> None:
        """The tail has seen the end of a partition."""
        self._ends[partition] = end

    def advance(self, body: Body) -> bool:
        """The next record; whether it shows that the topic was made again."""
        record = body.record
        is_again = record.offset < self.next.get(record.partition, 0)
        if is_again:
            self._ends.pop(record.partition, None)
            self.recent.begin_again({**self.next, record.partition: record.offset})
        self.next[record.partition] = record.offset + 1
        self.text = encode_topic(self.topic, self.next)
        self.recent.add(body)
        return is_again

    def since(self, positions: Positions) -> list[Body] | None:
        """What stands between `positions` and the tail; None where that is not in memory."""
        asked = {partition: positions.get((self.topic, partition), 0) for partition in self.next}
        if any(asked[partition] > offset for partition, offset in self.next.items()):
            return None
        return self.recent.since(asked)


class Client:
    """One live client: its backlog, and how its session is woken."""

    def __init__(
        self,
        backlog: Backlog[Message],
        key: bytes | None,
        on_overflow: Callable[[], None],
        write_now: Callable[[Message], bool],
    ) -> None:
        self.backlog = backlog
        self.key = key
        self.limit: Limit | None = None  # where its stream ends, if it does
        self.token = ""  # of the last message written
        self.sent = 0
        self.wake = asyncio.Event()
        self.is_slow = True  # does not take what it was given, as far as we know
        self.is_idle = False  # its session waits, and has nothing to write
        self._on_overflow = on_overflow
        self._write_now = write_now

    def wants(self, record: Record) -> bool:
        """Whether a record is for it: by its key, and by where its stream ends."""
        return (self.limit is None or self.limit.admits(record)) and (self.key is None or self.key == record.key)

    def reach(self, place: Place, position: int) -> None:
        """It was offered all of a partition before `position`; its session is woken if that is the end."""
        if self.limit is not None:
            self.limit.reach(place, position)
            if self.limit.is_reached:
                self.wake.set()

    def offer(self, message: Message) -> None:
        """Write a message to a client that has taken everything; else put it into the backlog and wake the session."""
        if self.is_idle and self._write_now(message):
            self.token = message.token or self.token
            self.sent += 1
            return
        self.is_idle = False
        if self.backlog.overflowed:
            return
        self.backlog.offer(message, is_slow=self.is_slow)
        if self.backlog.overflowed:
            self._on_overflow()
        self.wake.set()

    def look(self) -> None:
        """A burst may have come just before the client stopped taking, and nothing since."""
        if self.is_slow and not self.backlog.overflowed:
            self.backlog.keep_bounds()
            if self.backlog.overflowed:
                self._on_overflow()


class Stream:
    """All clients of one set of topics."""

    def __init__(self, topics: list[TopicState]) -> None:
        self.topics = topics
        self.members = 0  # with those who still read history
        self.clients: dict[Client, None] = {}
        self.limited: dict[Client, None] = {}  # those whose stream ends by itself
        self._joining: dict[Client, Positions] = {}

    @property
    def token(self) -> str:
        """Where a client stands that got everything so far."""
        return ";".join([topic.text for topic in self.topics if topic.resumes])

    @property
    def positions(self) -> Positions:
        return {(topic.topic, partition): offset for topic in self.topics for partition, offset in topic.next.items()}

    def since(self, positions: Positions) -> list[Body] | None:
        """What a client with these positions has missed; None where that is not in memory."""
        missed = [topic.since(positions) for topic in self.topics]
        return None if None in missed else [body for bodies in missed for body in bodies or ()]

    def attach(self, client: Client, positions: Positions) -> None:
        """A client that got everything below `positions`, which are not behind those of the stream."""
        if positions == self.positions:
            self._settle(client)
        else:
            self._joining[client] = dict(positions)
        for topic in self.topics:
            for partition, offset in topic.reached.items():
                client.reach((topic.topic, partition), offset)

    def _settle(self, client: Client) -> None:
        """It is as far as the tail."""
        (self.clients if client.limit is None else self.limited)[client] = None

    def is_settled(self, client: Client) -> bool:
        """Whether a client is as far as the tail, so that the stream's token is its own."""
        return client in self.clients or client in self.limited

    def detach(self, client: Client) -> None:
        self.clients.pop(client, None)
        self.limited.pop(client, None)
        self._joining.pop(client, None)

    def publish(self, body: Body) -> None:
        """A record that the tail handed out; the topic's state has advanced already."""
        record = body.record
        if self.clients or self.limited:
            message = record_message(body, self.token)
            for client in self.clients:
                if client.key is None or client.key == message.key:
                    client.offer(message)
            for client in self.limited:
                if client.wants(record):
                    client.offer(message)
        if self._joining:
            self._publish_to_joining(body)
        if self.limited:
            self.reach((record.topic, record.partition), record.offset + 1)

    def reach(self, place: Place, position: int) -> None:
        """The tail has handed out all of a partition before `position`; there may be no record at the last offsets."""
        for client in [*self.limited, *self._joining]:
            client.reach(place, position)

    def begin_again(self, place: Place) -> None:
        """A topic was made again: what a client still waits for there does not come."""
        for client in [*self.limited, *self._joining]:
            if client.limit is not None:
                client.limit.close(place)
                client.wake.set()

    def _publish_to_joining(self, body: Body) -> None:
        """Clients ahead of the tail skip what they have, and have tokens of their own until the tail is as far."""
        record = body.record
        place = (record.topic, record.partition)
        now = self.positions
        for client, positions in list(self._joining.items()):
            if record.offset >= positions.get(place, 0):
                positions[place] = record.offset + 1
                if client.wants(record):
                    client.offer(record_message(body, self.token_of(positions)))
                client.reach(place, record.offset + 1)
            if positions == now:
                del self._joining[client]
                self._settle(client)

    def token_of(self, positions: Positions) -> str:
        """The token of a client with positions of its own."""
        resumes = {topic.topic for topic in self.topics if topic.resumes}
        return encode_token({place: offset for place, offset in positions.items() if place[0] in resumes})
