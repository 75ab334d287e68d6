"""A simulated consumer: reads partitions from the beginning, waits for more, and remembers what it saw."""

from __future__ import annotations

from penstock.assure.history import Assign, End, Poll, Trim
from penstock.errors import ErrorCode
from penstock.kafka.records.batch import HEADER_SIZE, decode_header
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from penstock.kafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from proof.sim.client_context import Scene
from proof.sim.network import Asked, Link
from proof.sim.promises import SimTopic

EARLIEST = -2


class Position:
    """Where a consumer stands in one partition; offset -1: it asks for the start first."""

    def __init__(self, topic: SimTopic, index: int) -> None:
        self.topic = topic
        self.index = index
        self.offset = -1
        self.assignment = 0
        self.end = -1  # the end of the log, as the last answer told it


class Consumer:
    """One fetch in flight at a time."""

    isolation_level = 0

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.link: Link | None = None
        self.positions: dict[tuple[str, int], Position] = {}
        self._assignments = 0

    def follow(self, topic: SimTopic, index: int) -> None:
        self.positions.setdefault((topic.name, index), Position(topic, index))

    @property
    def is_at_end(self) -> bool:
        return all(p.topic.is_going or 0 <= p.end <= p.offset for p in self.positions.values())

    def act(self) -> None:
        if self.link is None or not self.link.is_open:
            self.link = self.scene.connect(self)
        if self.link is None or self.link.in_flight:
            return
        positions = [p for p in self.positions.values() if not p.topic.is_going]
        if not positions:
            return
        chance = self.scene.chance
        lost = [p for p in positions if p.offset < 0]
        if lost:
            self._ask_start(self.link, lost)
        else:
            self._fetch(self.link, chance.sample(positions, k=chance.randint(1, len(positions))))

    def _ask_start(self, link: Link, positions: list[Position]) -> None:
        topics = [ListOffsetsTopic(p.topic.name, [ListOffsetsPartition(p.index, -1, EARLIEST)]) for p in positions]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        link.ask(ApiKey.LIST_OFFSETS, request, self.scene.version(ApiKey.LIST_OFFSETS), positions)

    def _fetch(self, link: Link, positions: list[Position]) -> None:
        chance = self.scene.chance
        is_calm = self.scene.is_calm
        topics = [
            FetchTopic(
                p.topic.name,
                p.topic.topic_id,
                [
                    FetchPartition(
                        p.index,
                        fetch_offset=p.offset,
                        partition_max_bytes=100_000 if is_calm else chance.choice((1, 400, 3000)),
                    )
                ],
            )
            for p in positions
        ]
        request = FetchRequest(
            max_wait_ms=chance.choice((0, 20, 200, 500)),
            min_bytes=chance.choice((0, 1, 1, 500, 5000)),
            max_bytes=1_000_000 if is_calm else chance.choice((300, 3000, 1_000_000)),
            topics=topics,
            isolation_level=self.isolation_level,
        )
        link.ask(ApiKey.FETCH, request, self.scene.version(ApiKey.FETCH), positions)

    # Answers.

    def on_reply(self, asked: Asked, response: Message) -> None:
        positions: list[Position] = asked.tag  # type: ignore[assignment]  # set when asking
        if isinstance(response, ListOffsetsResponse):
            found = [part for topic in response.topics for part in topic.partitions]
            for position, part in zip(positions, found, strict=True):
                if not part.error_code:
                    self._begin(position, part.offset)
        elif isinstance(response, FetchResponse):
            fetched = [part for topic in response.responses for part in topic.partitions]
            for position, data in zip(positions, fetched, strict=True):
                self._take(position, data)

    def _begin(self, position: Position, offset: int) -> None:
        self._assignments += 1
        position.offset = offset
        position.assignment = self._assignments
        topic = position.topic
        if not topic.in_memory:
            history = self.scene.history
            if offset:
                history.append(Trim(self.name, topic.name, position.index, offset))
            history.append(Assign(self.name, position.assignment, topic.name, position.index, offset))

    def _take(self, position: Position, data: PartitionData) -> None:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position.offset = -1
            return
        if data.error_code == ErrorCode.CORRUPT_MESSAGE:
            position.offset += 1
            return
        if data.error_code:
            return
        position.end = data.high_watermark
        records: list[tuple[int, str]] = []
        raw = data.records or b""
        at = 0
        while at < len(raw):
            header = decode_header(raw, at)
            payload = bytes(raw[at + HEADER_SIZE : at + header.size])
            values = self.scene.ledger.values.get(payload, ()) if not header.is_control else ()
            for delta, value in enumerate(values):
                if header.base_offset + delta >= position.offset:
                    records.append((header.base_offset + delta, value))
            position.offset = max(position.offset, header.next_offset)
            at += header.size
        if records and not position.topic.in_memory:
            topic, index = position.topic.name, position.index
            self.scene.history.append(Poll(self.name, position.assignment, topic, index, tuple(records)))

    def record_ends(self) -> None:
        """A whole read has come to its end: say so in the history."""
        for p in self.positions.values():
            if not p.topic.in_memory and not p.topic.is_going:
                self.scene.history.append(End(self.name, p.assignment, p.topic.name, p.index, p.end))

    def on_broken(self, unanswered: list[Asked]) -> None:
        self.link = None
