"""Transactions of a broker or a cluster: listed, described, aborted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, TypeVar

from penstock.client.offsets import NoSuchTopicError
from penstock.client.raw_requests import DEADLINE_S, BareConnection
from penstock.errors import ErrorCode, PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.kafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from penstock.kafka.wire.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.kafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_TRANSACTION = 1
_TIMEOUT_MS = 60_000
_PAUSE_S = 0.02
_NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
_UNFINISHED = ("Ongoing", "PrepareCommit", "PrepareAbort")
_STILL_ENDING = 51
_NOT_YET = {14, 15, 16, _STILL_ENDING}  # a coordinator that loads, moves or still ends the transaction before

T = TypeVar("T")


class Ending(Enum):
    """How a transaction ended while its id was taken over, in Kafka's words for its states."""

    ABORT = "Abort"
    COMMIT = "Commit"
    NONE = ""


class OpenTransaction(NamedTuple):
    """One that stands open in a partition: readers of committed records do not get past `first_offset`."""

    partition: int
    producer_id: int
    epoch: int
    first_offset: int
    last_ms: int


def list_transactions(queue: KafkaTarget, states: list[str]) -> list[ListedTransaction]:
    """All that the brokers know, in any of these states if there are any."""
    found: list[ListedTransaction] = []
    for broker in _brokers(queue):
        with BareConnection(broker) as connection:
            answer = connection.ask(ListTransactionsRequest(states), 0, ListTransactionsResponse)
        _check(answer.error_code, "listing transactions")
        found += answer.transaction_states
    return sorted(found, key=lambda one: one.transactional_id)


def describe_transaction(queue: KafkaTarget, transactional_id: str) -> DescribedTransaction | None:
    """What its coordinator knows of it; None if that is nothing."""
    request = DescribeTransactionsRequest([transactional_id])

    def ask(connection: BareConnection) -> tuple[int, DescribedTransaction]:
        (found,) = connection.ask(request, 0, DescribeTransactionsResponse).transaction_states
        return found.error_code, found

    code, found = _at_coordinator(queue, transactional_id, ask)
    if code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    _check(code, transactional_id)
    return found


def abort_transaction(queue: KafkaTarget, transactional_id: str) -> Ending:
    """Abort what is open under this id, and fence whoever works under it; gives what was seen to end."""
    ending = Ending.NONE

    def ask(connection: BareConnection) -> tuple[int, None]:
        nonlocal ending
        request = InitProducerIdRequest(transactional_id, _TIMEOUT_MS)
        code = connection.ask(request, 4, InitProducerIdResponse).error_code
        if code == _STILL_ENDING:
            described = connection.ask(DescribeTransactionsRequest([transactional_id]), 0, DescribeTransactionsResponse)
            state = described.transaction_states[0].transaction_state
            ending = next((each for each in (Ending.ABORT, Ending.COMMIT) if state.endswith(each.value)), ending)
        return code, None

    code, _ = _at_coordinator(queue, transactional_id, ask)
    _check(code, transactional_id)
    return ending


def owner_in_partition(queue: KafkaTarget, topic: str, hanging: OpenTransaction) -> str | None:
    """The transactional id whose coordinator will end what is open there; None if nobody will."""
    for listed in list_transactions(queue, list(_UNFINISHED)):
        if listed.producer_id != hanging.producer_id:
            continue
        found = describe_transaction(queue, listed.transactional_id)
        if found is not None and found.transaction_state in _UNFINISHED:
            for each in found.topics:
                if each.topic == topic and hanging.partition in each.partitions:
                    return found.transactional_id
    return None


def partitions_of(queue: KafkaTarget, topic: str) -> list[int]:
    """The partitions of a topic; NoSuchTopicError if there is none."""
    return sorted(_leaders(queue, topic))


def open_transactions(queue: KafkaTarget, topic: str) -> list[OpenTransaction]:
    """Those that stand open in the partitions of a topic; NoSuchTopicError if there is none."""
    found = []
    for partition, leader in _leaders(queue, topic).items():
        request = DescribeProducersRequest([DescribeProducersTopic(topic, [partition])])
        with BareConnection(leader) as connection:
            answer = connection.ask(request, 0, DescribeProducersResponse)
        part = answer.topics[0].partitions[0]
        _check(part.error_code, f"{topic}-{partition}")
        found += [
            OpenTransaction(
                partition, each.producer_id, each.producer_epoch, each.current_txn_start_offset, each.last_timestamp
            )
            for each in part.active_producers
            if each.current_txn_start_offset >= 0
        ]
    return found


def abort_in_partition(queue: KafkaTarget, topic: str, hanging: OpenTransaction) -> None:
    """Abort it in one partition, whatever a coordinator says of it."""
    topics = [WritableTxnMarkerTopic(topic, [hanging.partition])]
    marker = WritableTxnMarker(hanging.producer_id, hanging.epoch, False, topics, 0)
    with BareConnection(_leaders(queue, topic)[hanging.partition]) as connection:
        answer = connection.ask(WriteTxnMarkersRequest([marker]), 1, WriteTxnMarkersResponse)
    _check(answer.markers[0].topics[0].partitions[0].error_code, f"{topic}-{hanging.partition}")


def _brokers(queue: KafkaTarget) -> Iterator[KafkaTarget]:
    with BareConnection(queue) as connection:
        answer = connection.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
    yield from (queue.at(broker.host, broker.port) for broker in answer.brokers)


def _leaders(queue: KafkaTarget, topic: str) -> dict[int, KafkaTarget]:
    with BareConnection(queue) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        answer = connection.ask(request, 9, MetadataResponse)
    if answer.topics[0].error_code in _NO_TOPIC:
        raise NoSuchTopicError(f"the queue has no topic {topic}")
    _check(answer.topics[0].error_code, topic)
    known = {broker.node_id: queue.at(broker.host, broker.port) for broker in answer.brokers}
    return {part.partition_index: known[part.leader_id] for part in answer.topics[0].partitions}


def _at_coordinator(
    queue: KafkaTarget, transactional_id: str, ask: Callable[[BareConnection], tuple[int, T]]
) -> tuple[int, T]:
    """Ask whoever coordinates this id, again while it is not ready."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        with BareConnection(queue) as connection:
            request = FindCoordinatorRequest(transactional_id, _TRANSACTION)
            found = connection.ask(request, 3, FindCoordinatorResponse)
        if found.error_code == 0:
            with BareConnection(queue.at(found.host, found.port)) as connection:
                code, answer = ask(connection)
            if code not in _NOT_YET or time.monotonic() > deadline:
                return code, answer
        elif time.monotonic() > deadline:
            _check(found.error_code, transactional_id)
        time.sleep(_PAUSE_S)


def _check(code: int, what: str) -> None:
    if code:
        name = ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code)
        raise PenstockError(f"{what}: the broker refused ({name})")
