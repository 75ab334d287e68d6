"""A simulated owner of transactions: one request at a time, repeated while its fate is unknown; sometimes it dies."""

from __future__ import annotations

from penstock.assure.history import Outcome, Send, Settle
from penstock.errors import ErrorCode
from penstock.kafka.records.batch import HEADER_SIZE, LEADER_EPOCH, MAGIC, TRANSACTIONAL, BatchHeader, encode_batch
from penstock.kafka.records.record import encode_values
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from penstock.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from proof.sim.client_context import Scene
from proof.sim.clients.producer import Flight, Lane, SentBatch
from proof.sim.network import Asked, Link
from proof.sim.promises import Place, SimTopic
from proof.sim.transaction_operations import Deed, Fate, group_of

AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.KAFKA_STORAGE_ERROR,
)
TIMEOUTS_MS = (2_000, 20_000)


class Transactor:
    """`by_epoch`: it speaks transaction version 2 (KIP-890), else it adds partitions and groups itself."""

    def __init__(self, scene: Scene, name: str, transactional_id: str, *, by_epoch: bool) -> None:
        self.scene = scene
        self.name = name
        self.transactional_id = transactional_id
        self.by_epoch = by_epoch
        self.link: Link | None = None
        self.lanes: dict[tuple[str, int], Lane] = {}
        self.producer_id = self.epoch = -1
        self._deed: Deed | None = None
        self._added: dict[object, None] = {}  # partitions and the group, in this transaction
        self._asked: tuple[ApiKey, Message, int, object] | None = None  # unanswered, to be repeated
        self._count = 0

    @property
    def is_done(self) -> bool:
        return self._deed is None and self._asked is None

    def follow(self, topic: SimTopic, index: int) -> None:
        self.lanes[topic.name, index] = Lane(topic, index)

    def act(self) -> None:
        if self.link is None or not self.link.is_open:
            self.link = self.scene.connect(self)
        if self.link is None or self.link.in_flight:
            return
        chance = self.scene.chance
        if not self.scene.is_calm and chance.random() < 0.02:
            self._die()
        if self._asked is not None:
            self._repeat(self.link)
        elif self.producer_id < 0:
            if not self.scene.is_calm:
                request = InitProducerIdRequest(self.transactional_id, chance.choice(TIMEOUTS_MS))
                self._ask(ApiKey.INIT_PRODUCER_ID, request, self.scene.version(ApiKey.INIT_PRODUCER_ID))
        elif self._deed is not None:
            self._go_on(self._deed)
        elif not self.scene.is_calm:
            self._deed = self.scene.deeds.begin(self.transactional_id)
            self._added.clear()

    def _die(self) -> None:
        """What is open stays open; the next life begins by initialising."""
        self._deed = None
        self._asked = None
        self.producer_id = -1

    # Requests.

    def _ask(self, key: ApiKey, request: Message, version: int, tag: object = None) -> None:
        self._asked = (key, request, version, tag)
        if self.link is not None:
            self.link.ask(key, request, version, tag)

    def _repeat(self, link: Link) -> None:
        if self._asked is not None:
            key, request, version, tag = self._asked
            link.ask(key, request, version, tag)

    def _go_on(self, deed: Deed) -> None:
        chance = self.scene.chance
        lanes = [lane for lane in self.lanes.values() if not lane.topic.is_going]
        size = sum(map(len, deed.values.values()))
        if self.scene.is_calm or not lanes or chance.random() < 0.15 + 0.1 * size:
            self._end(deed, commit=bool(size or deed.position) and chance.random() < 0.7)
        elif chance.random() < 0.2 and deed.position is None:
            self._hold(deed, chance.choice(lanes))
        else:
            self._write(deed, chance.choice(lanes))

    def _write(self, deed: Deed, lane: Lane) -> None:
        if not self.by_epoch and lane not in self._added:
            topics = [AddPartitionsToTxnTopic(lane.topic.name, [lane.index])]
            request = AddPartitionsToTxnRequest([], self.transactional_id, self.producer_id, self.epoch, topics)
            self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, self.scene.chance.randint(0, 3), lane)
            return
        batch = self._new_batch(deed, lane)
        data = [TopicProduceData(lane.topic.name, lane.topic.topic_id, [PartitionProduceData(lane.index, batch.raw)])]
        version = self.scene.version(ApiKey.PRODUCE, 12) if self.by_epoch else self.scene.chance.randint(3, 11)
        request_ = ProduceRequest(self.transactional_id, -1, 1000, data)
        self._ask(ApiKey.PRODUCE, request_, version, [(lane, batch)])

    def _new_batch(self, deed: Deed, lane: Lane) -> SentBatch:
        now_ms, values = self.scene.now_ms, []
        for _ in range(self.scene.chance.choice((1, 1, 2))):
            self._count += 1
            values.append(f"{self.name}.{lane.topic.name}.{self._count}")
        records = encode_values([value.encode() for value in values], now_ms)[HEADER_SIZE:]
        count = len(values)
        who = (self.producer_id, self.epoch, lane.sequence)
        header = BatchHeader(0, 0, LEADER_EPOCH, MAGIC, 0, TRANSACTIONAL, count - 1, now_ms, now_ms, *who, count)
        batch = SentBatch(bytes(encode_batch(header, records)), tuple(values), lane.sequence, now_ms)
        lane.sequence += count
        self.scene.ledger.values[batch.payload] = batch.values
        deed.values.setdefault(Place(lane.topic.name, lane.index), []).extend(values)
        for value in values:
            self.scene.deeds.of_value[value] = deed
            if not lane.topic.in_memory:
                self.scene.history.append(Send(self.name, lane.topic.name, lane.index, value))
        return batch

    def _hold(self, deed: Deed, lane: Lane) -> None:
        group = group_of(self.transactional_id)
        if not self.by_epoch and group not in self._added:
            request = AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group)
            self._ask(ApiKey.ADD_OFFSETS_TO_TXN, request, self.scene.version(ApiKey.ADD_OFFSETS_TO_TXN), group)
            return
        part = TxnOffsetCommitRequestPartition(lane.index, self.scene.deeds.next_position(deed))
        topics = [TxnOffsetCommitRequestTopic(lane.topic.name, [part])]
        version = 5 if self.by_epoch else self.scene.chance.randint(0, 4)
        request_ = TxnOffsetCommitRequest(self.transactional_id, group, self.producer_id, self.epoch, topics=topics)
        self._ask(ApiKey.TXN_OFFSET_COMMIT, request_, version)

    def _end(self, deed: Deed, *, commit: bool) -> None:
        deed.is_commit_asked = commit
        request = EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, commit)
        version = 5 if self.by_epoch else self.scene.chance.randint(0, 4)
        self._ask(ApiKey.END_TXN, request, version)

    # Answers.

    def on_reply(self, asked: Asked, response: Message) -> None:
        if self._asked is None or asked.request is not self._asked[1]:
            return  # of an earlier life
        code = _code(response)
        if code in AGAIN:
            return
        self._asked = None
        if code:
            # Fenced, timed out, a topic gone: the next life aborts what is open.
            self._die()
            return
        match response:
            case InitProducerIdResponse():
                self._begin_epoch(response.producer_id, response.producer_epoch)
            case AddPartitionsToTxnResponse() | AddOffsetsToTxnResponse():
                self._added[asked.tag] = None
            case ProduceResponse():
                self._settle(asked, response)
            case EndTxnResponse() if self._deed is not None and isinstance(asked.request, EndTxnRequest):
                self._deed.fate = Fate.COMMITTED if asked.request.committed else Fate.ABORTED
                self._deed = None
                if self.by_epoch:
                    self._begin_epoch(response.producer_id, response.producer_epoch)

    def _begin_epoch(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        for lane in self.lanes.values():
            lane.sequence = 0

    def _settle(self, asked: Asked, response: ProduceResponse) -> None:
        flight: Flight = asked.tag  # type: ignore[assignment]  # set by _write
        ((lane, batch),) = flight
        offset = response.responses[0].partition_responses[0].base_offset
        if not lane.topic.in_memory:
            for delta, value in enumerate(batch.values):
                where = (self.name, lane.topic.name, lane.index, value)
                self.scene.history.append(Settle(*where, Outcome.OK, offset + delta))

    def on_broken(self, unanswered: list[Asked]) -> None:
        self.link = None


def _code(response: Message) -> int:
    """The one error code of an answer."""
    match response:
        case AddPartitionsToTxnResponse():
            return response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        case ProduceResponse():
            return response.responses[0].partition_responses[0].error_code
        case TxnOffsetCommitResponse():
            return response.topics[0].partitions[0].error_code
        case InitProducerIdResponse() | EndTxnResponse() | AddOffsetsToTxnResponse():
            return response.error_code
    raise TypeError(f"an owner of transactions does not ask for {type(response).__name__}")
