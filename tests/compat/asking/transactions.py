"""A transactional producer in bare requests, in the words of either version of the protocol."""

from __future__ import annotations

import dataclasses
import time
from typing import TypeVar

from asking.batches import batch_of, lines
from asking.connection import DEADLINE_S, Connection
from penstock.kafka.records.batch import TRANSACTIONAL
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from penstock.kafka.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from penstock.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

TIMEOUT_MS = 60_000
GROUP, TRANSACTION = 0, 1
# Kafka answers before it is done: the coordinator loads, or the transaction before is still being ended.
NOT_YET = {14, 15, 16, 19, 51}
R = TypeVar("R", bound=Message)


def ask_until(connection: Connection, request: Message, version: int, answer: type[R]) -> R:
    """Ask again while the broker says that it is not ready, as clients do."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        response = connection.ask(request, version, answer)
        if time.monotonic() > deadline or not NOT_YET & codes(response):
            return response
        for kind in (GROUP, TRANSACTION):
            connection.ask(FindCoordinatorRequest("any", kind), 3, FindCoordinatorResponse)


def codes(value: object) -> set[int]:
    """Every error code of an answer."""
    if isinstance(value, list):
        return {code for element in value for code in codes(element)}
    if not dataclasses.is_dataclass(value):
        return set()
    fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return {each for name, each in fields if name.endswith("error_code")}.union(*(codes(each) for _, each in fields))


class Owner:
    """One that adds partitions itself (`by_epoch` False, as librdkafka), or leaves that to the broker (KIP-890)."""

    def __init__(self, connection: Connection, name: str, *, by_epoch: bool = False) -> None:
        self.connection = connection
        self.name = name
        self.by_epoch = by_epoch
        self.producer_id = self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, timeout_ms: int = TIMEOUT_MS) -> int:
        request = InitProducerIdRequest(self.name, timeout_ms)
        answer = ask_until(self.connection, request, 5, InitProducerIdResponse)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer.error_code

    def add_request(self, topic: str, partition: int = 0) -> AddPartitionsToTxnRequest:
        topics = [AddPartitionsToTxnTopic(topic, [partition])]
        return AddPartitionsToTxnRequest([], self.name, self.producer_id, self.epoch, topics)

    def add(self, topic: str, partition: int = 0) -> int:
        answer = ask_until(self.connection, self.add_request(topic, partition), 3, AddPartitionsToTxnResponse)
        return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code

    def write_request(self, topic: str, value: str, partition: int = 0) -> ProduceRequest:
        sequence = self.sequences.get((topic, partition), 0)
        batch = batch_of(
            lines(value), producer_id=self.producer_id, epoch=self.epoch, sequence=sequence, attributes=TRANSACTIONAL
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
        return ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=[data])

    def write(self, topic: str, value: str, partition: int = 0, version: int | None = None) -> int:
        """Write one record to a partition that was added, or will be by the broker; the error code."""
        version = version or (12 if self.by_epoch else 11)
        request = self.write_request(topic, value, partition)
        answer = ask_until(self.connection, request, version, ProduceResponse)
        code = answer.responses[0].partition_responses[0].error_code
        if code == 0:
            self.sequences[topic, partition] = self.sequences.get((topic, partition), 0) + 1
        return code

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        code = 0 if self.by_epoch else self.add(topic, partition)
        return code or self.write(topic, value, partition)

    def add_group(self, group: str) -> int:
        request = AddOffsetsToTxnRequest(self.name, self.producer_id, self.epoch, group)
        return ask_until(self.connection, request, 3, AddOffsetsToTxnResponse).error_code

    def offsets_request(self, group: str, topic: str, offset: int, partition: int = 0) -> TxnOffsetCommitRequest:
        topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(partition, offset)])]
        return TxnOffsetCommitRequest(self.name, group, self.producer_id, self.epoch, topics=topics)

    def commit_offset(self, group: str, topic: str, offset: int) -> int:
        """Take a position into the transaction; the error code."""
        code = 0 if self.by_epoch else self.add_group(group)
        request, version = self.offsets_request(group, topic, offset), 5 if self.by_epoch else 3
        answer = ask_until(self.connection, request, version, TxnOffsetCommitResponse)
        return code or answer.topics[0].partitions[0].error_code

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(self.name, self.producer_id, self.epoch, commit)

    def end(self, *, commit: bool = True) -> int:
        version = 5 if self.by_epoch else 4
        answer = ask_until(self.connection, self.end_request(commit=commit), version, EndTxnResponse)
        if answer.error_code == 0 and self.by_epoch:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return answer.error_code


def fetch_committed(connection: Connection, topic: str, offset: int = 0, partition: int = 0) -> FetchResponse:
    """What a reader of committed records is answered."""
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, isolation_level=1, topics=[FetchTopic(topic, partitions=[wanted])]
    )
    return connection.ask(request, 12, FetchResponse)


def fetch_offset(connection: Connection, group: str, topic: str, *, stable: bool = False) -> tuple[int, int]:
    """A group's position in partition 0, and the error code."""
    asked = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])])
    request = OffsetFetchRequest(groups=[asked], require_stable=stable)
    (found,) = ask_until(connection, request, 9, OffsetFetchResponse).groups[0].topics[0].partitions
    return found.committed_offset, found.error_code
