"""The same questions about records at every version of an API: good ones, and ones that must be refused."""

from __future__ import annotations

from uuid import UUID

from asking.batches import NOW_MS, Line, batch_of, lines, patched
from asking.connection import Connection
from asking.requests import create_topic, fetch_request, new_producer, produce, produce_request
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.kafka.wire.messages.fetch import FetchResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.kafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.kafka.wire.messages.produce import ProduceResponse

STRANGER = UUID(int=0x5EED)
_BY_ID_PRODUCE = _BY_ID_FETCH = 13


def ask_produce(connection: Connection, version: int, topic: str) -> list[Message]:
    """Good batches, a broken one, and places that do not exist."""
    topic_id = create_topic(connection, topic)
    by_id = version >= _BY_ID_PRODUCE
    good = batch_of(lines("one", "two"))
    requests = [
        produce_request(topic, good, topic_id=topic_id),
        produce_request(topic, good, topic_id=topic_id, acks=1),
        produce_request(topic, patched(good, 61, b"\x7f", seal=False), topic_id=topic_id),
        produce_request(topic, good, topic_id=topic_id, partition=7),
        produce_request("unknown", good, topic_id=STRANGER if by_id else None),
        produce_request(topic, good, topic_id=topic_id),
    ]
    return [connection.ask(request, version, ProduceResponse) for request in requests]


def ask_fetch(connection: Connection, version: int, topic: str) -> list[Message]:
    """From a batch's start, its middle, the end, beyond the end, and from places that do not exist."""
    topic_id = create_topic(connection, topic)
    for value in ("one", "two"):
        produce(connection, topic, batch_of(lines(value, value)))
    by_id = version >= _BY_ID_FETCH
    requests = [fetch_request(topic, offset, topic_id=topic_id) for offset in (0, 1, 2, 4, 5, -1)]
    requests += [
        fetch_request(topic, 0, partition=7, topic_id=topic_id),
        fetch_request("unknown", 0, topic_id=STRANGER if by_id else None),
        fetch_request(topic, 0, topic_id=topic_id, leader_epoch=9 if version >= 9 else -1),
        fetch_request(topic, 0, topic_id=topic_id, leader_epoch=0 if version >= 9 else -1),
        fetch_request(topic, 0, topic_id=topic_id, partition_max_bytes=1),
    ]
    return [connection.ask(request, version, FetchResponse) for request in requests]


def ask_list_offsets(connection: Connection, version: int, topic: str) -> list[Message]:
    """Both ends, the latest time, times before, inside and after the records, and places that do not exist."""
    create_topic(connection, topic)
    create_topic(connection, f"{topic}-empty")
    stamps = (NOW_MS - 3000, NOW_MS - 1000, NOW_MS - 2000)
    produce(connection, topic, batch_of([Line(b"v", timestamp=stamp) for stamp in stamps]))
    wanted = [-1, -2, 0, NOW_MS - 3001, NOW_MS - 3000, NOW_MS - 2500, NOW_MS - 1000, NOW_MS]
    # Each of the special times came with its own version; -5 and -6 speak of tiered storage.
    wanted += [stamp for stamp, since in ((-3, 7), (-4, 8), (-5, 9), (-6, 11)) if version >= since]
    answers: list[Message] = []
    for name in (topic, f"{topic}-empty"):
        for stamp in wanted:
            answers.append(_list(connection, version, name, 0, stamp))
    answers.append(_list(connection, version, topic, 7, -1))
    answers.append(_list(connection, version, "unknown", 0, -1))
    if version >= 4:
        answers.append(_list(connection, version, topic, 0, -1, leader_epoch=9))
    return answers


def _list(
    connection: Connection, version: int, topic: str, partition: int, stamp: int, leader_epoch: int = -1
) -> Message:
    asked = ListOffsetsPartition(partition_index=partition, timestamp=stamp, current_leader_epoch=leader_epoch)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    return connection.ask(request, version, ListOffsetsResponse)


def ask_leader_epoch(connection: Connection, version: int, topic: str) -> list[Message]:
    """The epoch that is, ones that are not, and places that do not exist; before and after a record."""
    create_topic(connection, topic)
    answers = [_epoch(connection, version, topic, 0, -1, 0)]
    produce(connection, topic, batch_of(lines("one", "two")))
    for current, epoch in ((-1, 0), (0, 0), (-1, 5), (5, 0)):
        answers.append(_epoch(connection, version, topic, 0, current, epoch))
    answers.append(_epoch(connection, version, topic, 7, -1, 0))
    answers.append(_epoch(connection, version, "unknown", 0, -1, 0))
    return answers


def _epoch(connection: Connection, version: int, topic: str, partition: int, current: int, epoch: int) -> Message:
    asked = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
    # -1 is a consumer; -2, the default, a tool that may look at any replica.
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
    return connection.ask(request, version, OffsetForLeaderEpochResponse)


def ask_delete_records(connection: Connection, version: int, topic: str) -> list[Message]:
    """Forward, back, to the end, beyond it, and in places that do not exist."""
    create_topic(connection, topic)
    produce(connection, topic, batch_of(lines("one", "two", "three")))
    answers: list[Message] = []
    for name, partition, offset in (
        (topic, 0, 1),
        (topic, 0, 0),
        (topic, 0, 4),
        (topic, 0, -2),
        (topic, 0, -1),
        (topic, 7, 1),
        ("unknown", 0, 1),
    ):
        asked = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[asked])], timeout_ms=10_000)
        answers.append(connection.ask(request, version, DeleteRecordsResponse))
    return answers


def ask_init_producer_id(connection: Connection, version: int, topic: str) -> list[Message]:
    """Two producers without a transactional id; from version 3 one that names the id it has."""
    new_producer(connection)
    requests = [InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000) for _ in range(2)]
    if version >= 3:
        requests.append(InitProducerIdRequest(transactional_id=None, producer_id=1, producer_epoch=0))
    return [connection.ask(request, version, InitProducerIdResponse) for request in requests]
