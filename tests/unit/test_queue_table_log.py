"""A journal keeps the order of what is written, and a partition tells each waiter once, whatever they do when told."""

from __future__ import annotations

from uuid import UUID

import pytest
from stage.batches import NOW_MS, batch
from stage.logs import LIMITS, new_disk, opened, stage, sync

from penstock.errors import ErrorCode
from penstock.ports import Disk
from penstock.queue.core import table_log as journal
from penstock.queue.core.partition import Partition
from penstock.queue.core.table_log import TableLog, open_journal
from penstock.queue.groups.changes import Change, GroupGone, OffsetsCommitted, Position, decode_change, encode_change
from penstock.queue.groups.table import GroupTable
from penstock.queue.log.log import Log
from proof.sim.disk import FakeDisk


class Recorder:
    """A waiter that remembers what it was told, and then does something."""

    def __init__(self, then: object = None) -> None:
        self.told: list[ErrorCode] = []
        self._then = then

    def done(self, code: ErrorCode) -> None:
        self.told.append(code)
        if callable(self._then):
            self._then()


def open_one(disk: Disk) -> TableLog[GroupTable, Change]:
    return open_journal(disk, "j", GroupTable(), encode_change, decode_change, LIMITS, NOW_MS, {}, lambda *_: None)


def committed(offset: int) -> OffsetsCommitted:
    return OffsetsCommitted("g", (Position(UUID(int=1), 0, offset, -1, "x" * 200, NOW_MS),))


def end_sync(log: Log, partition: Partition) -> None:
    """One group commit of the partition, its waiters told."""
    assert partition.flush() is None
    while log.needs_sync:
        files, folders = log.begin_sync()
        for file in files:
            file.sync()
        for folder in folders:
            log.disk.sync_folder(folder)
        partition.on_synced()
        assert partition.flush() is None


def test_what_is_written_while_others_are_told_comes_behind_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot is due, one write is under way, one waits for it; the first, when told, writes a third."""
    monkeypatch.setattr(journal, "COMPACT_BYTES", 300)
    disk = FakeDisk(new_disk().chance)
    one = open_one(disk)
    order: list[int] = []

    def first(_: ErrorCode) -> None:
        order.append(1)
        one.write([committed(3)], lambda _: order.append(3), NOW_MS)

    one.write([committed(0), committed(1)], first, NOW_MS)
    one.write([committed(2)], lambda _: order.append(2), NOW_MS)
    end_sync(one.partition.log, one.partition)
    assert order == [1, 2, 3]
    again = open_one(disk)
    assert again.table.positions == one.table.positions
    (position,) = again.table.positions["g"].values()
    assert position.offset == 3


def test_a_waiter_that_stops_its_partition_lets_nobody_be_told_twice() -> None:
    """What is durable is told so, all the same."""
    log = opened(new_disk())
    partition = Partition("p", log)
    last = Recorder()
    first = Recorder(lambda: partition.on_sync_failed("for the test"))
    for waiter in (first, last):
        stage(log, batch())
        partition.when_durable(waiter)
    end_sync(log, partition)
    assert (first.told, last.told) == ([ErrorCode.NONE], [ErrorCode.NONE])


def test_a_failed_change_is_not_true() -> None:
    """Neither live nor after a restart."""
    disk = FakeDisk(new_disk().chance)
    one = open_one(disk)
    one.write([committed(7)], lambda _: None, NOW_MS)
    end_sync(one.partition.log, one.partition)
    told: list[ErrorCode] = []
    disk.faults.room = 10
    one.write([GroupGone("g")], told.append, NOW_MS)
    assert one.partition.flush() is not None
    disk.faults.calm_down()
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert "g" in one.table
    sync(one.partition.log)
    assert "g" in open_one(disk).table
