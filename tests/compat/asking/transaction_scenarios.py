"""The same questions about transactions at every version of an API: good ones, and ones that must be refused."""

from __future__ import annotations

from asking.connection import Connection
from asking.requests import create_topic
from asking.transactions import Owner, ask_until
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.kafka.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from penstock.kafka.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from penstock.kafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from penstock.kafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

MISSING = "nobody-made-this"
TIMEOUT_MS = 60_000


def _owner(connection: Connection, topic: str, partitions: int = 2) -> Owner:
    create_topic(connection, topic, partitions)
    owner = Owner(connection, topic)
    assert owner.init() == 0
    return owner


def ask_init_transactional(connection: Connection, version: int, topic: str) -> list[Message]:
    """New, again, with bad timeouts and without a name; from version 3 on by one who says who it is."""

    def asked(*said: object) -> InitProducerIdResponse:
        return ask_until(connection, InitProducerIdRequest(*said), version, InitProducerIdResponse)  # type: ignore[arg-type]  # as declared

    answers: list[Message] = [first := asked(topic, TIMEOUT_MS), asked(topic, TIMEOUT_MS)]
    answers += [asked("", TIMEOUT_MS), asked(topic, 0), asked(topic, 900_001)]
    if version >= 3:
        answers += [
            asked(topic, TIMEOUT_MS, first.producer_id, 1),
            asked(topic, TIMEOUT_MS, first.producer_id, 1),
            asked(topic, TIMEOUT_MS, first.producer_id, 0),
            asked(topic, TIMEOUT_MS, first.producer_id + 77, 2),
            asked(topic, TIMEOUT_MS, -1, 2),
        ]
    return answers


def ask_add_partitions(connection: Connection, version: int, topic: str) -> list[Message]:
    """The owner, strangers, partitions that are not there; from version 4 on several at once, or only asked for."""
    owner = _owner(connection, topic)

    def asked(name: str, pid: int, epoch: int, *parts: tuple[str, list[int]], verify: bool = False) -> Message:
        topics = [AddPartitionsToTxnTopic(*part) for part in parts]
        request = AddPartitionsToTxnRequest([], name, pid, epoch, topics)
        if version >= 4:
            one = AddPartitionsToTxnTransaction(name, pid, epoch, verify, topics)
            request = AddPartitionsToTxnRequest([one])
        return ask_until(connection, request, version, AddPartitionsToTxnResponse)

    pid, epoch = owner.producer_id, owner.epoch
    answers = [
        asked(MISSING, pid, epoch, (topic, [0])),
        asked(topic, pid + 77, epoch, (topic, [0])),
        asked(topic, pid, epoch + 1, (topic, [0])),
        asked("", pid, epoch, (topic, [0])),
        asked(topic, pid, epoch, (topic, [0, 9])),
        asked(topic, pid, epoch, (MISSING, [0]), (topic, [0])),
        asked(topic, pid, epoch, (topic, [0])),
        asked(topic, pid, epoch, (topic, [0])),
    ]
    if version >= 4:
        answers.append(asked(topic, pid, epoch, (topic, [0, 1]), verify=True))
        answers.append(asked(topic, pid, epoch + 1, (topic, [0, 1]), verify=True))
        answers.append(asked(MISSING, pid, epoch, (topic, [0]), verify=True))
    return answers


def ask_add_offsets(connection: Connection, version: int, topic: str) -> list[Message]:
    """The owner, twice, and strangers."""
    owner = _owner(connection, topic)
    pid, epoch = owner.producer_id, owner.epoch
    said = [
        (MISSING, pid, epoch, topic),
        (topic, pid + 77, epoch, topic),
        (topic, pid, epoch + 1, topic),
        ("", pid, epoch, topic),
        (topic, pid, epoch, topic),
        (topic, pid, epoch, topic),
    ]
    return [ask_until(connection, AddOffsetsToTxnRequest(*each), version, AddOffsetsToTxnResponse) for each in said]


def ask_end(connection: Connection, version: int, topic: str) -> list[Message]:
    """Nothing begun, a commit, the same again, the opposite; strangers."""
    owner = _owner(connection, topic)

    def asked(name: str, pid: int, epoch: int, commit: bool) -> EndTxnResponse:
        return ask_until(connection, EndTxnRequest(name, pid, epoch, commit), version, EndTxnResponse)

    pid, epoch = owner.producer_id, owner.epoch
    answers: list[Message] = [
        asked(MISSING, pid, epoch, True),
        asked(topic, pid + 77, epoch, True),
        asked(topic, pid, epoch + 1, True),
        asked("", pid, epoch, True),
        asked(topic, pid, epoch, True),
    ]
    assert owner.add(topic) == 0
    answers += [asked(topic, pid, epoch + 1, True), asked(topic, pid, epoch, True), asked(topic, pid, epoch, True)]
    answers.append(asked(topic, pid, epoch, False))
    owner.epoch += version >= 5
    assert owner.add(topic) == 0
    answers += [asked(topic, pid, owner.epoch, False), asked(topic, pid, owner.epoch, False)]
    answers.append(asked(topic, pid, owner.epoch, True))
    if version >= 5:
        # Nothing of the third one arrived; the epoch grows all the same.
        answers += [asked(topic, pid, owner.epoch + 1, False), asked(topic, pid, owner.epoch + 1, False)]
        answers.append(asked(topic, pid, owner.epoch + 2, True))
    return answers


def ask_txn_offset_commit(connection: Connection, version: int, topic: str) -> list[Message]:
    """Before the group was added and after; strangers; topics and members that are not there."""
    owner = _owner(connection, topic)

    def asked(request: TxnOffsetCommitRequest) -> Message:
        return ask_until(connection, request, version, TxnOffsetCommitResponse)

    good = owner.offsets_request(topic, topic, 5)
    answers = []
    if version < 5:
        answers.append(asked(good))
        assert owner.add_group(topic) == 0
    answers += [asked(good), asked(good), asked(owner.offsets_request(topic, topic, 6, partition=1))]
    answers.append(asked(owner.offsets_request(topic, MISSING, 5)))
    for change in ({"producer_epoch": owner.epoch + 1}, {"producer_id": owner.producer_id + 77}):
        wrong = owner.offsets_request(topic, topic, 5)
        for name, value in change.items():
            setattr(wrong, name, value)
        answers.append(asked(wrong))
    if version >= 3:
        member = owner.offsets_request(topic, topic, 5)
        member.generation_id, member.member_id = 3, "nobody"
        answers.append(asked(member))
    assert owner.end() == 0
    return answers


def ask_describe_transactions(connection: Connection, version: int, topic: str) -> list[Message]:
    """Initialised, with a partition and a group in it, ended; one that nobody knows."""
    owner = _owner(connection, topic)

    def asked(*names: str) -> Message:
        return ask_until(connection, DescribeTransactionsRequest(list(names)), version, DescribeTransactionsResponse)

    answers = [asked(topic), asked(MISSING), asked()]
    assert owner.send(topic, "in it", 1) == 0
    answers.append(asked(topic))
    assert owner.end() == 0
    assert owner.add(topic) == 0  # waits until it is ended
    assert owner.end(commit=False) == 0
    return answers


def ask_list_transactions(connection: Connection, version: int, topic: str) -> list[Message]:
    """By producer, by state, by a state that does not exist; from version 1 on by how long it is open."""
    owner = _owner(connection, topic)
    assert owner.send(topic, "open") == 0

    def asked(states: list[str], producers: list[int], open_ms: int = -1) -> Message:
        request = ListTransactionsRequest(states, producers, open_ms if version >= 1 else -1)
        return ask_until(connection, request, version, ListTransactionsResponse)

    mine = [owner.producer_id]
    answers = [asked([], mine), asked(["Ongoing"], mine), asked(["Empty"], mine), asked(["Odd", "Ongoing"], mine)]
    if version >= 1:
        answers.append(asked([], mine, 3_600_000))
    assert owner.end() == 0
    return answers


def ask_describe_producers(connection: Connection, version: int, topic: str) -> list[Message]:
    """A partition with an open transaction, one without, one that is not there."""
    owner = _owner(connection, topic)
    assert owner.send(topic, "one") == 0
    assert owner.send(topic, "two") == 0
    asked = [DescribeProducersTopic(topic, [0, 1, 9]), DescribeProducersTopic(MISSING, [0])]
    answer = ask_until(connection, DescribeProducersRequest(asked), version, DescribeProducersResponse)
    assert owner.end() == 0
    return [answer]


def ask_write_markers(connection: Connection, version: int, topic: str) -> list[Message]:
    """Abort what hangs, with too old an epoch and with the right one; a topic that is not there."""
    owner = _owner(connection, topic)
    assert owner.send(topic, "hangs") == 0

    def asked(epoch: int, name: str) -> Message:
        marker = WritableTxnMarker(owner.producer_id, epoch, False, [WritableTxnMarkerTopic(name, [0])], 0)
        return ask_until(connection, WriteTxnMarkersRequest([marker]), version, WriteTxnMarkersResponse)

    return [asked(owner.epoch, MISSING), asked(owner.epoch, topic)]
