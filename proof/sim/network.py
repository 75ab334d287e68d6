"""The fake network: connections that carry real bytes, break, and lose what was under way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.header import decode_response_header, encode_request_header
from penstock.kafka.wire.message import Message, decode, encode
from penstock.kafka.wire.messages.produce import ProduceRequest
from penstock.queue.core.events import Connected, Disconnected, Event, Received


@dataclass(slots=True)
class Asked:
    """A request under way."""

    correlation_id: int
    key: ApiKey
    version: int
    request: Message
    tag: object
    delivered_ms: int = -1
    waits_from_ms: int = -1  # later, if the node put it aside first


class Client(Protocol):
    """Who sits at the other end of a link."""

    name: str

    def on_reply(self, asked: Asked, response: Message) -> None: ...

    def on_broken(self, unanswered: list[Asked]) -> None: ...


class WrongReplyError(Exception):
    """The node answered what was not asked."""


class Link:
    """One connection."""

    def __init__(self, number: int, client: Client) -> None:
        self.number = number
        self.client = client
        self.is_open = True
        self.is_paused = False
        self.is_known = False  # the node has heard of it
        self.owes_drained = False
        self.is_closing = False
        self._outgoing: deque[tuple[bytes, Asked]] = deque()
        self.unanswered: deque[Asked] = deque()
        self.incoming: deque[tuple[Asked, Message]] = deque()
        self._correlation_id = 0

    def ask(self, key: ApiKey, request: Message, version: int, tag: object = None) -> Asked:
        """Send a request; its answer comes to the client, or on_broken does."""
        self._correlation_id += 1
        asked = Asked(self._correlation_id, key, version, request, tag)
        header = encode_request_header(key, version, self._correlation_id, self.client.name)
        self._outgoing.append((header + encode(request, version), asked))
        return asked

    @property
    def in_flight(self) -> int:
        return len(self._outgoing) + len(self.unanswered) + len(self.incoming)

    def deliver(self, count: int, now_ms: int, frames: list[memoryview]) -> list[Event]:
        """Up to `count` requests reach the node; `frames` collects the memory they stand in."""
        events: list[Event] = []
        if not self.is_known:
            self.is_known = True
            events.append(Connected(self.number, self.client.name))
        while self._outgoing and count > 0 and not self.is_paused:
            count -= 1
            raw, asked = self._outgoing.popleft()
            asked.delivered_ms = asked.waits_from_ms = now_ms
            if not (isinstance(asked.request, ProduceRequest) and asked.request.acks == 0):
                self.unanswered.append(asked)
            frame = memoryview(bytearray(raw))
            frames.append(frame)
            events.append(Received(self.number, frame))
        return events

    def take(self, data: bytes) -> list[tuple[Asked, Message]]:
        """Whole answers from the node, in the order of the requests; WrongReplyError if they are not."""
        answers = []
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            frame = data[at + 4 : at + 4 + size]
            at += 4 + size
            if len(frame) != size or not self.unanswered:
                raise WrongReplyError(f"{self.client.name} was sent {len(data)} bytes that answer nothing")
            asked = self.unanswered.popleft()
            correlation_id, body = decode_response_header(frame, asked.key, asked.version)
            if correlation_id != asked.correlation_id:
                raise WrongReplyError(f"{self.client.name} expected {asked.correlation_id}, got {correlation_id}")
            answers.append((asked, decode(APIS[asked.key].response, frame, asked.version, body)))
        self.incoming.extend(answers)
        return answers

    def hand_over(self, count: int) -> None:
        """Up to `count` answers reach the client."""
        while self.incoming and count > 0 and self.is_open:
            count -= 1
            self.client.on_reply(*self.incoming.popleft())

    def break_off(self) -> list[Event]:
        """The connection is gone: requests and answers under way are lost."""
        if not self.is_open:
            return []
        self.is_open = False
        lost = [asked for asked, _ in self.incoming] + list(self.unanswered) + [asked for _, asked in self._outgoing]
        self._outgoing.clear()
        self.unanswered.clear()
        self.incoming.clear()
        self.client.on_broken(lost)
        return [Disconnected(self.number)] if self.is_known else []
