"""A transactional producer in front of a staged node, in the words of either version of the protocol."""

from __future__ import annotations

from typing import Any

from penstock.kafka.records.batch import TRANSACTIONAL
from penstock.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.kafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.queue.core.partition import Partition
from penstock.queue.transactions.changes import State
from stage.batches import batch
from stage.nodes import Stage, ack_of
from stage.transactions import committed_values

TIMEOUT_MS = 60_000


class TransactionalProducer:
    """One that adds partitions itself (`by_epoch` False, as librdkafka), or leaves that to the broker (KIP-890)."""

    def __init__(self, stage: Stage, name: str = "till", *, by_epoch: bool = False, client: int = 1) -> None:
        self.stage = stage
        self.name = name
        self.by_epoch = by_epoch
        self.client = client
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, timeout_ms: int = TIMEOUT_MS, *, keep: bool = False) -> int:
        """Initialise, saying who it is if `keep`; the error code."""
        owner = (self.producer_id, self.epoch) if keep else (-1, -1)
        request = InitProducerIdRequest(self.name, timeout_ms, *owner)
        answer: InitProducerIdResponse = self.stage.ask(request, 5, self.client)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer.error_code

    def add(self, topic: str = "rain", partition: int = 0, version: int = 3) -> int:
        topics = [AddPartitionsToTxnTopic(topic, [partition])]
        request = AddPartitionsToTxnRequest([], self.name, self.producer_id, self.epoch, topics)
        answer = self.stage.ask(request, version, self.client)
        code: int = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        return code

    def frame(self, value: bytes, topic: str = "rain", partition: int = 0) -> ProduceRequest:
        sequence = self.sequences.get((topic, partition), 0)
        data = batch([value], producer=(self.producer_id, self.epoch, sequence), attributes=TRANSACTIONAL)
        parts = [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, data)])]
        return ProduceRequest(self.name, -1, 1000, parts)

    def send(self, value: bytes, topic: str = "rain", partition: int = 0, version: int | None = None) -> int:
        """Write one record; the error code."""
        version = version or (12 if self.by_epoch else 11)
        if version < 12:
            assert self.add(topic, partition) in (0, 51, 90, 49), "added, or refused for what follows, too"
        return self.write(value, topic, partition, version)

    def write(self, value: bytes, topic: str = "rain", partition: int = 0, version: int = 11) -> int:
        """The same without adding the partition before."""
        answer = self.stage.ask(self.frame(value, topic, partition), version, self.client)
        code: int = ack_of(answer).error_code
        if code == 0:
            self.sequences[topic, partition] = self.sequences.get((topic, partition), 0) + 1
        return code

    def commit_offset(self, offset: int, group: str = "g", topic: str = "rain", version: int | None = None) -> int:
        """Take a position into the transaction; the error code."""
        version = version or (5 if self.by_epoch else 3)
        if version < 5:
            request = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group)
            code: int = self.stage.ask(request, 3, self.client).error_code
            if code:
                return code
        topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, offset)])]
        request_ = TxnOffsetCommitRequest(self.name, group, self.producer_id, self.epoch, topics=topics)
        results: list[Any] = self.stage.ask(request_, version, self.client).topics[0].partitions
        return int(results[0].error_code)

    def end_request(self, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(self.name, self.producer_id, self.epoch, commit)

    def end(self, commit: bool = True) -> int:
        """Commit or abort; the error code."""
        answer: EndTxnResponse = self.stage.ask(self.end_request(commit), 5 if self.by_epoch else 4, self.client)
        if answer.error_code == 0 and self.by_epoch:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer.error_code


def position(stage: Stage, group: str = "g", topic: str = "rain", *, stable: bool = False) -> tuple[int, int]:
    """Committed offset of a group in partition 0, and the error code."""
    asked = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])])
    answer: Any = stage.ask(OffsetFetchRequest(groups=[asked], require_stable=stable), 9)
    (found,) = answer.groups[0].topics[0].partitions
    return found.committed_offset, found.error_code


def seen(stage: Stage, partition: int = 0, topic: str = "rain") -> list[bytes]:
    """What a reader of committed records sees."""
    found = stage.node.host.partition(stage.node.catalog.topics[topic], partition, stage.now_ms)
    assert isinstance(found, Partition)
    return committed_values(found.log)


def state(stage: Stage, name: str = "till") -> State:
    found = stage.node.transactions.table.get(name)
    assert found is not None
    return found.state


def restarted(stage: Stage) -> Stage:
    """The same disk under a new node, after kill -9."""
    return Stage(stage.disk)
