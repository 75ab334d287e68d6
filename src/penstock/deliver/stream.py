"""Live clients of the same topics: each message is encoded once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.deliver.backlog import Backlog
from penstock.deliver.envelope import Body, Message, record_message
from penstock.deliver.recent import Recent
from penstock.deliver.token import Positions, encode_token, encode_topic


class TopicState:
    """Up to where the tail has handed out a topic, and the latest of it."""

    def __init__(self, topic: str, resumes: bool, recent: Recent) -> None:
        self.topic = topic
        self.resumes = resumes
        self.recent = recent
        self.next = dict(sorted(recent.starts.items()))
        self.text = encode_topic(topic, self.next)

    def advance(self, body: Body) -> None:
        record = body.record
        if record.offset < self.next.get(record.partition, 0):
            self.recent.begin_again({**self.next, record.partition: record.offset})
        self.next[record.partition] = record.offset + 1
        self.text = encode_topic(self.topic, self.next)
        self.recent.add(body)

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
        self.token = ""  # of the last message written
        self.sent = 0
        self.wake = asyncio.Event()
        self.is_slow = True  # does not take what it was given, as far as we know
        self.is_idle = False  # its session waits, and has nothing to write
        self._on_overflow = on_overflow
        self._write_now = write_now

    def wants(self, key: bytes | None) -> bool:
        return self.key is None or self.key == key

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
            self.clients[client] = None
        else:
            self._joining[client] = dict(positions)

    def detach(self, client: Client) -> None:
        self.clients.pop(client, None)
        self._joining.pop(client, None)

    def publish(self, body: Body) -> None:
        """A record that the tail handed out; the topic's state has advanced already."""
        if self.clients:
            message = record_message(body, self.token)
            for client in self.clients:
                if client.key is None or client.key == message.key:
                    client.offer(message)
        if self._joining:
            self._publish_to_joining(body)

    def _publish_to_joining(self, body: Body) -> None:
        """Clients ahead of the tail skip what they have, and have tokens of their own until the tail is as far."""
        record = body.record
        place = (record.topic, record.partition)
        now = self.positions
        for client, positions in list(self._joining.items()):
            if record.offset >= positions.get(place, 0):
                positions[place] = record.offset + 1
                if client.wants(record.key):
                    client.offer(record_message(body, self.token_of(positions)))
            if positions == now:
                del self._joining[client]
                self.clients[client] = None

    def token_of(self, positions: Positions) -> str:
        """The token of a client with positions of its own."""
        resumes = {topic.topic for topic in self.topics if topic.resumes}
        return encode_token({place: offset for place, offset in positions.items() if place[0] in resumes})
