"""A simulated producer: several batches in flight, sent again in order when their fate is unknown, as clients do."""

from __future__ import annotations

from collections import deque

from penstock.assure.history import Outcome, Send, Settle
from penstock.errors import ErrorCode
from penstock.kafka.records.batch import HEADER_SIZE, LEADER_EPOCH, MAGIC, BatchHeader, encode_batch
from penstock.kafka.records.record import encode_values
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from proof.sim.client_context import Scene
from proof.sim.network import Asked, Link
from proof.sim.promises import SimTopic

IN_FLIGHT_MAX = 5


class SentBatch:
    """A batch and what the client knows of it."""

    __slots__ = ("count", "payload", "raw", "sequence", "timestamp", "values")

    def __init__(self, raw: bytes, values: tuple[str, ...], sequence: int, timestamp: int) -> None:
        self.raw = raw
        self.payload = raw[HEADER_SIZE:]
        self.values = values
        self.count = len(values)
        self.sequence = sequence
        self.timestamp = timestamp


class Lane:
    """One partition a producer writes to; `again` are batches to be repeated, oldest first."""

    def __init__(self, topic: SimTopic, index: int) -> None:
        self.topic = topic
        self.index = index
        self.sequence = 0
        self.epoch = 0
        self.again: deque[SentBatch] = deque()
        self.flying: list[SentBatch] = []

    def is_oldest(self, batch: SentBatch) -> bool:
        return all(other.sequence >= batch.sequence for other in (*self.flying, *self.again))

    def give_back(self, batch: SentBatch) -> None:
        """Its fate is unknown: it goes first among those to be repeated, in order."""
        if batch in self.flying:
            self.flying.remove(batch)
            self.again = deque(sorted((*self.again, batch), key=lambda b: b.sequence))


Flight = list[tuple[Lane, SentBatch]]


class Producer:
    """`acks` 0 sends and forgets; only an idempotent one repeats without risk."""

    def __init__(self, scene: Scene, name: str, idempotent: bool, acks: int) -> None:
        self.scene = scene
        self.name = name
        self.idempotent = idempotent
        self.acks = acks
        self.link: Link | None = None
        self.lanes: dict[tuple[str, int], Lane] = {}
        self.producer_id = -1
        self.refused: list[tuple[Lane, str]] = []  # answers that a client in order should never get
        self._is_asking = False
        self._count = 0

    @property
    def is_done(self) -> bool:
        return not any(lane.again or lane.flying for lane in self.lanes.values()) and not self._is_asking

    def act(self) -> None:
        if self.link is None or not self.link.is_open:
            self.link = self.scene.connect(self)
        if self.link is None or self.link.in_flight >= IN_FLIGHT_MAX:
            return
        if self.idempotent and self.producer_id < 0:
            if not self._is_asking:
                self._is_asking = True
                request = InitProducerIdRequest(transactional_id=None)
                self.link.ask(ApiKey.INIT_PRODUCER_ID, request, self.scene.version(ApiKey.INIT_PRODUCER_ID))
            return
        flight = self._load()
        if flight:
            self._send(self.link, flight)

    def _load(self) -> Flight:
        """The next batch of one or two partitions; repeats go alone and in order."""
        chance = self.scene.chance
        flight: Flight = []
        for lane in chance.sample(list(self.lanes.values()), k=min(len(self.lanes), chance.randint(1, 2))):
            if lane.again:
                if not lane.flying:
                    flight.append((lane, lane.again.popleft()))
            elif not self.scene.is_calm and len(lane.flying) < IN_FLIGHT_MAX and not lane.topic.is_going:
                flight.append((lane, self._new_batch(lane)))
        return flight

    def _new_batch(self, lane: Lane) -> SentBatch:
        chance, now_ms = self.scene.chance, self.scene.now_ms
        values = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            self._count += 1
            padding = "x" * (chance.choice((0, 0, 10, 200, 700)))
            values.append(f"{self.name}.{lane.topic.name}.{self._count}{padding}")
        records = encode_values([value.encode() for value in values], now_ms)[HEADER_SIZE:]
        count = len(values)
        who = (self.producer_id, lane.epoch, lane.sequence) if self.idempotent else (-1, -1, -1)
        header = BatchHeader(0, 0, LEADER_EPOCH, MAGIC, 0, 0, count - 1, now_ms, now_ms, *who, count)
        batch = SentBatch(bytes(encode_batch(header, records)), tuple(values), lane.sequence, now_ms)
        lane.sequence += count
        self.scene.ledger.values[batch.payload] = batch.values
        if not lane.topic.in_memory:
            life = f"{self.name}/{self.producer_id}/{lane.epoch}" if self.idempotent else None
            for value in values:
                self.scene.history.append(Send(self.name, lane.topic.name, lane.index, value, life))
        return batch

    def _send(self, link: Link, flight: Flight) -> None:
        version = self.scene.version(ApiKey.PRODUCE)
        data = []
        for lane, batch in flight:
            part = PartitionProduceData(index=lane.index, records=batch.raw)
            data.append(TopicProduceData(lane.topic.name, lane.topic.topic_id, [part]))
            if self.acks:
                lane.flying.append(batch)
        request = ProduceRequest(acks=self.acks, timeout_ms=1000, topic_data=data, transactional_id=None)
        link.ask(ApiKey.PRODUCE, request, version, flight)

    # Answers.

    def on_reply(self, asked: Asked, response: Message) -> None:
        if isinstance(response, InitProducerIdResponse):
            self._is_asking = False
            if not response.error_code:
                self.producer_id = response.producer_id
            return
        if not isinstance(response, ProduceResponse):
            raise TypeError(f"a producer does not ask for {type(response).__name__}")
        flight: Flight = asked.tag  # type: ignore[assignment]  # set by _send
        parts = [part for topic in response.responses for part in topic.partition_responses]
        for (lane, batch), part in zip(flight, parts, strict=True):
            self._settle(lane, batch, part)

    def _settle(self, lane: Lane, batch: SentBatch, part: PartitionProduceResponse) -> None:
        code = part.error_code
        if batch not in lane.flying:
            return  # given up meanwhile
        if code == ErrorCode.NONE:
            lane.flying.remove(batch)
            self._record(lane, batch, Outcome.OK, part.base_offset)
        elif code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID) or not self.idempotent:
            lane.flying.remove(batch)
            self._record(lane, batch, Outcome.UNKNOWN, None)
            if not lane.topic.is_going and code != ErrorCode.KAFKA_STORAGE_ERROR:
                self.refused.append((lane, f"{self.name} got error {code}"))
        else:
            if code != ErrorCode.KAFKA_STORAGE_ERROR and (
                code != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or lane.is_oldest(batch)
            ):
                what = f"{self.name} got error {code} for its oldest batch (sequence {batch.sequence})"
                self.refused.append((lane, what))
                self._start_over(lane)
            else:
                lane.give_back(batch)

    def _start_over(self, lane: Lane) -> None:
        """The node has forgotten what came before: give up what is under way, and begin a new epoch (KIP-360)."""
        for batch in (*lane.flying, *lane.again):
            self._record(lane, batch, Outcome.UNKNOWN, None)
        lane.flying.clear()
        lane.again.clear()
        lane.epoch += 1
        lane.sequence = 0

    def _record(self, lane: Lane, batch: SentBatch, outcome: Outcome, offset: int | None) -> None:
        if not lane.topic.in_memory:
            for delta, value in enumerate(batch.values):
                at = None if offset is None else offset + delta
                self.scene.history.append(Settle(self.name, lane.topic.name, lane.index, value, outcome, at))

    def on_broken(self, unanswered: list[Asked]) -> None:
        self.link = None
        self._is_asking = False
        for asked in unanswered:
            for lane, batch in asked.tag or ():  # type: ignore[attr-defined]  # a flight, or None
                if self.idempotent:
                    lane.give_back(batch)
                elif batch in lane.flying:
                    lane.flying.remove(batch)
                    self._record(lane, batch, Outcome.UNKNOWN, None)
