"""Transactions in bare requests: what both brokers promise, and where each stands when something comes late."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from asking.connection import DEADLINE_S, Connection
from asking.requests import LATEST, create_topic
from asking.transactions import Owner, ask_until, fetch_committed, fetch_offset
from crc32c import crc32c

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.record import decode_records
from penstock.kafka.wire.messages.end_txn import EndTxnResponse
from penstock.kafka.wire.messages.fetch import PartitionData
from penstock.kafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from penstock.kafka.wire.messages.produce import ProduceResponse

KINDS = pytest.mark.parametrize("by_epoch", [False, True], ids=["librdkafka", "kip-890"])


def fetched(connection: Connection, topic: str, partition: int = 0) -> PartitionData:
    return fetch_committed(connection, topic, 0, partition).responses[0].partitions[0]


def committed(connection: Connection, topic: str, partition: int = 0) -> list[str]:
    """What a reader of committed records hands on, told as Kafka's clients do it."""
    part = fetched(connection, topic, partition)
    aborted = sorted((one.first_offset, one.producer_id) for one in part.aborted_transactions or ())
    found, skipped, data = [], set(), memoryview(bytes(part.records or b""))
    while len(data):
        header = decode_header(data)
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        if header.is_control:
            skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            found += [(record.value or b"").decode() for record in decode_records(data[: header.size])]
        data = data[header.size :]
    return found


def until(fact: Callable[[], bool]) -> None:
    """Kafka writes markers after its answer: wait for what must come."""
    deadline = time.monotonic() + DEADLINE_S
    while not fact():
        assert time.monotonic() < deadline, "it did not happen in time"


def sees(connection: Connection, topic: str, *values: str, partition: int = 0) -> None:
    until(lambda: committed(connection, topic, partition) == list(values))


@KINDS
def test_commits_are_seen_whole_and_aborts_never(connection: Connection, topic: str, by_epoch: bool) -> None:
    """In every partition; readers are told the stable end and what was aborted."""
    create_topic(connection, topic, 2)
    owner = Owner(connection, topic, by_epoch=by_epoch)
    assert owner.init() == 0
    for partition, value in enumerate(("a", "b")):
        assert owner.send(topic, value, partition) == 0
    assert (committed(connection, topic, 0), fetched(connection, topic).last_stable_offset) == ([], 0)
    assert owner.end() == 0
    sees(connection, topic, "a")
    sees(connection, topic, "b", partition=1)
    assert owner.send(topic, "never") == 0
    assert owner.end(commit=False) == 0
    assert owner.send(topic, "c") == 0
    assert owner.end() == 0
    sees(connection, topic, "a", "c")
    part = fetched(connection, topic)
    assert (part.high_watermark, part.last_stable_offset) == (6, 6)
    assert [one.first_offset for one in part.aborted_transactions or ()] == [2]


@KINDS
def test_the_latest_offset_is_the_stable_end(connection: Connection, topic: str, by_epoch: bool) -> None:
    """For who reads what is committed; for the others it is the end."""
    create_topic(connection, topic)
    owner = Owner(connection, topic, by_epoch=by_epoch)
    owner.init()
    assert owner.send(topic, "open") == 0
    asked = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=LATEST)])]
    found = [
        connection.ask(ListOffsetsRequest(-1, level, asked), 7, ListOffsetsResponse).topics[0].partitions[0].offset
        for level in (0, 1)
    ]
    assert found == [1, 0]
    assert owner.end() == 0


@KINDS
def test_positions_are_true_with_the_commit(connection: Connection, topic: str, by_epoch: bool) -> None:
    """Not before, and never when it is aborted; who wants them stable has to wait."""
    create_topic(connection, topic)
    owner = Owner(connection, topic, by_epoch=by_epoch)
    owner.init()
    assert owner.commit_offset(topic, topic, 7) == 0
    assert fetch_offset(connection, topic, topic) == (-1, 0)
    assert fetch_offset(connection, topic, topic, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert owner.end() == 0
    until(lambda: fetch_offset(connection, topic, topic, stable=True) == (7, 0))
    assert owner.commit_offset(topic, topic, 9) == 0
    assert owner.end(commit=False) == 0
    until(lambda: fetch_offset(connection, topic, topic, stable=True) == (7, 0))


@KINDS
def test_a_new_owner_fences_the_old_one(connection: Connection, topic: str, by_epoch: bool) -> None:
    """What it had open is aborted, and nothing of it is taken any more."""
    create_topic(connection, topic)
    old, new = (Owner(connection, topic, by_epoch=by_epoch) for _ in range(2))
    old.init()
    assert old.send(topic, "old") == 0
    assert new.init() == 0
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
    assert old.write(topic, "zombie") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.add(topic) == ErrorCode.PRODUCER_FENCED
    assert old.add_group(topic) == ErrorCode.PRODUCER_FENCED
    assert old.end() == ErrorCode.PRODUCER_FENCED
    assert new.send(topic, "new") == 0
    assert new.end() == 0
    sees(connection, topic, "new")


@KINDS
def test_a_transaction_open_too_long_is_aborted(connection: Connection, topic: str, by_epoch: bool) -> None:
    """Its owner can only begin again. Kafka looks every ten seconds, so this takes a while there."""
    create_topic(connection, topic)
    owner = Owner(connection, topic, by_epoch=by_epoch)
    owner.init(timeout_ms=500)
    assert owner.send(topic, "slow") == 0
    until(lambda: fetched(connection, topic).last_stable_offset == 2)
    assert owner.write(topic, "more") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert owner.end() == (ErrorCode.INVALID_TXN_STATE if by_epoch else ErrorCode.PRODUCER_FENCED)
    assert owner.init() == 0
    assert owner.send(topic, "again") == 0
    assert owner.end() == 0
    sees(connection, topic, "again")


def test_kip_890_a_late_end_does_not_end_the_next(connection: Connection, topic: str) -> None:
    """And a late record does not enter it: each transaction has an epoch of its own."""
    create_topic(connection, topic)
    owner = Owner(connection, topic, by_epoch=True)
    owner.init()
    assert owner.send(topic, "one") == 0
    late_end, late_write = owner.end_request(commit=False), owner.write_request(topic, "late")
    assert owner.end() == 0
    assert owner.send(topic, "two") == 0
    assert ask_until(connection, late_end, 5, EndTxnResponse).error_code == ErrorCode.PRODUCER_FENCED
    answer = connection.ask(late_write, 12, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert owner.end() == 0
    sees(connection, topic, "one", "two")


def test_before_kip_890_a_late_end_ends_the_next(connection: Connection, topic: str) -> None:
    """What remains possible with librdkafka, here as on Kafka: nothing tells the two apart."""
    create_topic(connection, topic)
    owner = Owner(connection, topic)
    owner.init()
    assert owner.send(topic, "one") == 0
    late_end = owner.end_request(commit=False)
    assert owner.end(commit=False) == 0
    assert owner.send(topic, "two") == 0
    assert ask_until(connection, late_end, 4, EndTxnResponse).error_code == 0
    assert owner.end() == ErrorCode.INVALID_TXN_STATE
    sees(connection, topic)


@pytest.mark.parametrize(
    ("version", "code"), [(11, ErrorCode.TRANSACTION_ABORTABLE), (10, ErrorCode.INVALID_TXN_STATE)]
)
def test_before_kip_890_a_late_record_is_refused(connection: Connection, topic: str, version: int, code: int) -> None:
    """Its partition is not in the transaction that is open now."""
    create_topic(connection, topic, 2)
    owner = Owner(connection, topic)
    owner.init()
    assert owner.send(topic, "one") == 0
    late = owner.write_request(topic, "late")
    assert owner.end(commit=False) == 0
    assert owner.send(topic, "two", 1) == 0
    answer = connection.ask(late, version, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == code
    assert owner.end() == 0
    sees(connection, topic, "two", partition=1)


@KINDS
def test_a_plain_write_does_not_enter_an_open_transaction(connection: Connection, topic: str, by_epoch: bool) -> None:
    """By the same producer, without the mark of the transaction."""
    create_topic(connection, topic)
    owner = Owner(connection, topic, by_epoch=by_epoch)
    owner.init()
    assert owner.send(topic, "in it") == 0
    request = owner.write_request(topic, "plain")
    records = bytearray(request.topic_data[0].partition_data[0].records or b"")
    records[22] = 0
    records[17:21] = _checksum(records)
    request.topic_data[0].partition_data[0].records = records
    answer = connection.ask(request, 11, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TXN_STATE
    assert owner.end() == 0
    sees(connection, topic, "in it")


def _checksum(batch: bytearray) -> bytes:
    return int(crc32c(bytes(batch[21:]))).to_bytes(4, "big")
