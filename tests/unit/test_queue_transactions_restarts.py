"""Transactions over kills, failing disks and damage: whole or undone, and what is known is what a restart finds."""

from __future__ import annotations

import pytest
from stage.nodes import Stage
from stage.owners import TIMEOUT_MS, TransactionalProducer, position, restarted, seen, state

from penstock.errors import ErrorCode
from penstock.queue.core.events import Sync, Synced
from penstock.queue.core.partition import Partition
from penstock.queue.log.layout import INDEX, LOG, PRODUCERS, file_name, partition_folder
from penstock.queue.transactions.changes import State
from proof.sim.inode import Mood

KINDS = pytest.mark.parametrize("by_epoch", [False, True], ids=["librdkafka", "kip-890"])


def open_in_two_partitions(*, by_epoch: bool = False) -> tuple[Stage, TransactionalProducer]:
    """A transaction with `a` in one partition and `b` in the other."""
    stage = Stage()
    stage.topic(partitions=2)
    producer = TransactionalProducer(stage, by_epoch=by_epoch)
    producer.init()
    producer.send(b"a", partition=0)
    producer.send(b"b", partition=1)
    return stage, producer


def test_after_a_restart_the_timeout_begins_anew() -> None:
    """Nobody knows how long the machine was off."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage)
    producer.init(timeout_ms=5_000)
    producer.send(b"slow")
    again = restarted(stage)
    again.step()
    again.wait(4_999)
    assert state(again) is State.ONGOING
    again.wait(2)
    again.end_syncs()
    assert (state(again), seen(again)) == (State.COMPLETE_ABORT, [])


@KINDS
@pytest.mark.parametrize("commit", [True, False])
def test_a_kill_at_every_step_of_an_end_leaves_it_whole_or_undone(by_epoch: bool, commit: bool) -> None:
    """Each sync that the end needs is the last one once; afterwards both partitions and the position agree."""
    for ended in range(12):
        stage, producer = open_in_two_partitions(by_epoch=by_epoch)
        producer.commit_offset(7)
        stage.send(producer.end_request(commit), 5 if by_epoch else 4)
        for _ in range(ended):
            if stage.syncs:
                end_one(stage, stage.syncs.pop(0))
        is_answered = bool(stage.answers())
        stage.disk.cut_power(stage.disk.chance.choice(list(Mood)))
        again = Stage(stage.disk)
        again.step()
        again.end_syncs()
        decided = state(again)
        assert decided is not State.PREPARE_COMMIT
        if decided is State.ONGOING:
            assert not is_answered
            again.wait(TIMEOUT_MS + 1)
            again.end_syncs()
        is_true = decided is State.COMPLETE_COMMIT
        assert is_true == (commit and decided is not State.ONGOING)
        assert (seen(again, 0), seen(again, 1)) == (([b"a"], [b"b"]) if is_true else ([], []))
        assert position(again, stable=True) == (7 if is_true else -1, 0)


def end_one(stage: Stage, sync: Sync) -> None:
    """Let one of the syncs under way end, and no other."""
    stage.step(Synced(sync.job, stage.run(sync)))


def test_an_end_is_answered_when_every_partition_shows_it() -> None:
    """Until then a reader may see it in one of them and not yet in the other."""
    stage, producer = open_in_two_partitions()
    stage.send(producer.end_request(True), 4)
    moments = []
    while stage.syncs:
        end_one(stage, stage.syncs.pop(0))
        moments.append((len(seen(stage, 0)), len(seen(stage, 1)), len(stage.answers())))
    assert list(dict.fromkeys(moments))[:3] == [(0, 0, 0), (1, 0, 0), (1, 1, 1)]


def test_a_partition_that_takes_no_marker_holds_only_itself_up() -> None:
    """The commit is true and answered; the marker is written when that partition can be written again."""
    stage, producer = open_in_two_partitions()
    stopped = stage.node.store.open[stage.node.catalog.topics["rain"].raw_id, 1]
    stopped.on_sync_failed("for the test")
    assert producer.end() == 0
    assert (seen(stage, 0), seen(stage, 1), state(stage)) == ([b"a"], [], State.PREPARE_COMMIT)
    assert producer.add() == ErrorCode.CONCURRENT_TRANSACTIONS
    again = restarted(stage)
    again.step()
    again.end_syncs()
    assert (seen(again, 1), state(again)) == ([b"b"], State.COMPLETE_COMMIT)


def test_records_whose_partition_never_got_into_the_transaction_are_found_after_a_crash() -> None:
    """Both were being written; the record survived, that it belongs to the transaction did not. No ack was given."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage, by_epoch=True)
    producer.init()
    stage.send(producer.frame(b"half"), 12)
    partition = stage.node.store.open[stage.node.catalog.topics["rain"].raw_id, 0]
    for sync in [sync for sync in stage.syncs if partition.log.active.file in sync.files]:
        stage.syncs.remove(sync)
        end_one(stage, sync)
    assert stage.answers() == []
    stage.disk.cut_power(next(iter(Mood)))
    again = Stage(stage.disk)
    producer.stage = again
    assert state(again) is State.EMPTY
    assert seen(again) == []
    again.step()
    again.end_syncs()
    assert state(again) is State.ONGOING
    assert producer.write(b"half", version=12) == 0
    assert producer.end() == 0
    assert seen(again) == [b"half"]


def test_live_state_is_what_a_restart_finds() -> None:
    """Both come from the same records."""
    stage = Stage()
    stage.topic(partitions=3)
    for number in range(6):
        producer = TransactionalProducer(stage, f"t{number}", by_epoch=number % 2 == 0)
        producer.init()
        producer.send(b"x", partition=number % 3)
        producer.commit_offset(number, f"g{number}")
        if number < 4:
            producer.end(commit=number < 2)
    stage.end_syncs()
    again = restarted(stage)
    assert again.node.transactions.table.transactions == stage.node.transactions.table.transactions
    assert again.node.groups.table.held == stage.node.groups.table.held
    assert again.node.groups.table.positions == stage.node.groups.table.positions
    assert again.node.groups.table.bytes == stage.node.groups.table.bytes


def test_a_damaged_marker_does_not_undo_a_commit() -> None:
    """What cannot be read decides nothing: readers wait, until an operator says how it ended."""
    stage = Stage()
    stage.topic()
    producer = TransactionalProducer(stage)
    producer.init()
    producer.send(b"committed")
    assert producer.end() == 0
    folder = partition_folder(stage.node.catalog.topics["rain"].topic_id, 0)
    log = stage.disk.inode(f"{folder}/{file_name(0, LOG)}").data
    log[-1] ^= 1
    for name in stage.disk.names(folder):
        if name.endswith((INDEX, PRODUCERS)):
            stage.disk.remove(f"{folder}/{name}")
    again = restarted(stage)
    found = again.node.host.partition(again.node.catalog.topics["rain"], 0, again.now_ms)
    assert isinstance(found, Partition)
    again.step()
    again.end_syncs()
    assert (found.log.stable.offset, found.log.next_offset) == (0, 2)
    assert found.log.segments[0].damages[0].offset == 1
    producer.stage = again
    assert producer.send(b"next") == ErrorCode.KAFKA_STORAGE_ERROR
