"""Transactions: seen whole or not at all, by one owner at a time, whatever the broker goes through meanwhile."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from stage.nodes import Stage
from stage.owners import TIMEOUT_MS, TransactionalProducer, position, restarted, seen, state

from penstock.config.broker import BrokerConfig
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.queue.transactions.changes import State
from penstock.queue.transactions.coordinator import REFUSED_ID
from penstock.queue.transactions.rules import EPOCH_LAST

KINDS = pytest.mark.parametrize("by_epoch", [False, True], ids=["librdkafka", "kip-890"])


@KINDS
def test_a_committed_transaction_is_seen_in_all_its_partitions(by_epoch: bool) -> None:
    """And nothing of it before."""
    stage = Stage()
    stage.topic(partitions=2)
    producer = TransactionalProducer(stage, by_epoch=by_epoch)
    assert producer.init() == 0
    assert [producer.send(b"a", partition=0), producer.send(b"b", partition=1)] == [0, 0]
    assert (seen(stage, 0), seen(stage, 1)) == ([], [])
    assert producer.end() == 0
    assert (seen(stage, 0), seen(stage, 1)) == ([b"a"], [b"b"])
    assert producer.send(b"c") == 0
    assert producer.end(commit=False) == 0
    assert producer.send(b"d") == 0
    assert producer.end() == 0
    assert (seen(stage, 0), state(stage)) == ([b"a", b"d"], State.COMPLETE_COMMIT)


@KINDS
def test_positions_become_true_with_the_transaction_never_before(by_epoch: bool) -> None:
    """Who asks for stable positions is told to wait meanwhile."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage, by_epoch=by_epoch)
    producer.init()
    assert producer.commit_offset(5) == 0
    assert position(stage) == (-1, 0)
    assert position(stage, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert producer.end() == 0
    assert position(stage, stable=True) == (5, 0)
    producer.commit_offset(9)
    producer.end(commit=False)
    assert position(restarted(stage), stable=True) == (5, 0)


def test_the_owner_before_is_fenced_and_its_transaction_aborted() -> None:
    """From the moment the new one is initialised, in every request."""
    stage = Stage()
    stage.topic()
    old, new = TransactionalProducer(stage), TransactionalProducer(stage)
    old.init()
    old.send(b"old")
    assert new.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    assert new.init() == 0
    assert new.producer_id == old.producer_id
    assert new.epoch > old.epoch + 1
    assert old.add() == ErrorCode.PRODUCER_FENCED
    assert old.write(b"zombie") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert old.commit_offset(1) == ErrorCode.PRODUCER_FENCED
    assert old.end() == ErrorCode.PRODUCER_FENCED
    assert new.send(b"new") == 0
    assert new.end() == 0
    assert seen(stage) == [b"new"]


def test_with_kip_890_nothing_late_enters_or_ends_the_next_transaction() -> None:
    """Each has an epoch of its own."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage, by_epoch=True)
    producer.init()
    producer.send(b"one")
    late_end, late_write = producer.end_request(commit=False), producer.frame(b"late")
    assert producer.end() == 0
    assert producer.send(b"two") == 0
    assert stage.ask(late_end, 5).error_code == ErrorCode.PRODUCER_FENCED
    answer = stage.ask(late_write, 12)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end() == 0
    assert seen(stage) == [b"one", b"two"]


def test_without_kip_890_a_late_end_ends_the_next_transaction() -> None:
    """What clients like librdkafka can still meet: the request looks like one for the transaction that is open now."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage)
    producer.init()
    producer.send(b"one")
    late_end = producer.end_request(commit=False)
    assert producer.end(commit=False) == 0
    assert producer.send(b"two") == 0
    assert stage.ask(late_end, 4).error_code == 0
    assert producer.end() == ErrorCode.INVALID_TXN_STATE
    assert seen(stage) == []


def test_without_kip_890_a_late_record_does_not_enter_the_next_transaction() -> None:
    """Unless its partition was added to that one, too; the sequence refuses it then."""
    stage = Stage()
    stage.topic(partitions=2)
    producer = TransactionalProducer(stage)
    producer.init()
    producer.send(b"one")
    late = producer.frame(b"late")
    assert producer.end(commit=False) == 0
    assert producer.send(b"two", partition=1) == 0
    for version, code in ((11, ErrorCode.TRANSACTION_ABORTABLE), (10, ErrorCode.INVALID_TXN_STATE)):
        answer = stage.ask(late, version)
        assert answer.responses[0].partition_responses[0].error_code == code
    assert producer.end() == 0
    assert (seen(stage, 0), seen(stage, 1)) == ([], [b"two"])


@KINDS
def test_an_end_that_is_repeated_is_answered_as_the_first_time(by_epoch: bool) -> None:
    """Its answer may have been lost; the opposite is refused."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage, by_epoch=by_epoch)
    producer.init()
    producer.send(b"one")
    version = 5 if by_epoch else 4
    commit, abort = producer.end_request(commit=True), producer.end_request(commit=False)
    first = stage.ask(commit, version)
    assert stage.ask(commit, version) == first
    assert stage.ask(abort, version).error_code == ErrorCode.INVALID_TXN_STATE
    assert seen(stage) == [b"one"]


def test_what_was_never_begun_cannot_be_ended() -> None:
    """With KIP-890 an abort grows the epoch all the same: nothing of it may arrive later."""
    stage = Stage()
    stage.topic()
    plain, by_epoch = TransactionalProducer(stage, "a"), TransactionalProducer(stage, "b", by_epoch=True)
    for producer in (plain, by_epoch):
        assert producer.init() == 0
        assert producer.end() == ErrorCode.INVALID_TXN_STATE
    assert plain.end(commit=False) == ErrorCode.INVALID_TXN_STATE
    late = by_epoch.frame(b"late")
    assert by_epoch.end(commit=False) == 0
    assert by_epoch.epoch == 1
    answer = stage.ask(late, 12)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH


@KINDS
def test_a_transaction_that_stays_open_too_long_is_aborted(by_epoch: bool) -> None:
    """By the steady clock; its owner is fenced, and readers go on."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage, by_epoch=by_epoch)
    producer.init(timeout_ms=5_000)
    producer.send(b"slow")
    stage.wait(4_999)
    assert state(stage) is State.ONGOING
    stage.wait(2)
    stage.end_syncs()
    assert state(stage) is State.COMPLETE_ABORT
    assert producer.write(b"more", version=12 if by_epoch else 11) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end() == (ErrorCode.INVALID_TXN_STATE if by_epoch else ErrorCode.PRODUCER_FENCED)
    assert seen(stage) == []
    assert producer.init() == 0
    producer.send(b"again")
    assert producer.end() == 0
    assert seen(stage) == [b"again"]


def test_epochs_that_are_used_up_give_a_new_producer_id() -> None:
    """By initialising, and with KIP-890 by ending; whoever has the old id is fenced."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage)
    producer.init()
    _set_epoch(stage, EPOCH_LAST - 1)
    before = producer.producer_id
    assert producer.init() == 0
    assert (producer.producer_id, producer.epoch) == (before, EPOCH_LAST)
    assert producer.init() == 0
    assert producer.producer_id != before
    assert producer.epoch == 0
    producer.send(b"new id")
    assert producer.end() == 0

    by_epoch = TransactionalProducer(stage, by_epoch=True)
    by_epoch.init()
    _set_epoch(stage, EPOCH_LAST)
    by_epoch.epoch, old = EPOCH_LAST, by_epoch.producer_id
    assert by_epoch.send(b"last epoch") == 0
    repeat = by_epoch.end_request(commit=True)
    assert by_epoch.end() == 0
    assert by_epoch.producer_id != old
    assert by_epoch.epoch == 0
    answer = stage.ask(repeat, 5)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, by_epoch.producer_id, 0)
    assert by_epoch.send(b"first epoch") == 0
    assert by_epoch.end() == 0
    assert seen(stage) == [b"new id", b"last epoch", b"first epoch"]


def _set_epoch(stage: Stage, epoch: int) -> None:
    """Let the epochs pass without thirty thousand requests."""
    table = stage.node.transactions.table
    table.replay_(replace(table.transactions["till"], epoch=epoch))


def test_a_producer_that_says_who_it_is_gets_its_next_epoch_once() -> None:
    """A repeat is answered as the first time (KIP-360); a stranger is fenced."""
    stage = Stage()
    producer = TransactionalProducer(stage)
    producer.init()
    owner = (producer.producer_id, producer.epoch)
    assert producer.init(keep=True) == 0
    assert producer.epoch == 1
    answer = stage.ask(InitProducerIdRequest("till", TIMEOUT_MS, *owner), 5)
    assert (answer.error_code, answer.producer_epoch) == (0, 1)
    assert producer.init(keep=True) == 0
    assert stage.ask(InitProducerIdRequest("till", TIMEOUT_MS, *owner), 5).error_code == ErrorCode.PRODUCER_FENCED
    assert stage.ask(InitProducerIdRequest("till", TIMEOUT_MS, 99, 0), 5).error_code == ErrorCode.PRODUCER_FENCED
    assert stage.ask(InitProducerIdRequest("till", TIMEOUT_MS, *owner), 3).error_code == (
        ErrorCode.INVALID_PRODUCER_EPOCH
    )


@pytest.mark.parametrize(
    ("name", "timeout_ms", "code"),
    [
        ("", 1000, ErrorCode.INVALID_REQUEST),
        ("t" * (BrokerConfig().transactional_id_chars_max + 1), 1000, REFUSED_ID),
        ("t", 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", -5, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ("t", 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, timeout_ms: int, code: ErrorCode) -> None:
    assert Stage().ask(InitProducerIdRequest(name, timeout_ms)).error_code == code


def test_the_number_of_transactional_ids_is_bounded_and_old_ones_go() -> None:
    """Silent for a week, and not in a transaction."""
    stage = Stage(transactional_ids_max=2)
    stage.topic()
    producers = [TransactionalProducer(stage, name) for name in ("a", "b", "c")]
    assert [producer.init() for producer in producers] == [0, 0, REFUSED_ID]
    stage.wait(7 * 86_400_000 + 700_000)
    stage.end_syncs()
    assert stage.node.transactions.table.transactions == {}
    assert producers[2].init() == 0
    assert restarted(stage).node.transactions.table.transactions.keys() == {"c"}


def test_the_number_of_groups_in_a_transaction_is_bounded() -> None:
    """All of them are written with each change of it."""
    stage = Stage(transaction_groups_max=2)
    stage.topic()
    producer = TransactionalProducer(stage)
    producer.init()
    assert [producer.commit_offset(1, f"g{number}") for number in range(3)] == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert producer.end() == 0
    assert position(stage, "g1") == (1, 0)


def test_a_deleted_topic_does_not_hold_up_the_end() -> None:
    """What it held is gone; the rest is committed."""
    stage = Stage()
    stage.topic()
    stage.topic("gone")
    producer = TransactionalProducer(stage)
    producer.init()
    producer.send(b"kept")
    producer.send(b"lost", "gone")
    stage.ask(DeleteTopicsRequest([DeleteTopicState("gone")]))
    assert producer.end() == 0
    assert seen(stage) == [b"kept"]
