"""The witness: whatever is torn by a power cut, a durable point that was durable once is left."""

from __future__ import annotations

from stage.batches import batch
from stage.logs import FOLDER, new_disk, opened, put, stage

from penstock.queue.log.durable_point import SLOT_POSITIONS, SLOT_SIZE, DurablePoint, decode_durable_point
from penstock.queue.log.layout import WITNESS
from penstock.queue.log.log import Log
from proof.sim.disk import FakeDisk


def left_by_the_worst_cut(disk: FakeDisk) -> DurablePoint | None:
    """What is told after a power cut that tears every slot whose write has not reached the disk."""
    inode = disk.inode(f"{FOLDER}/{WITNESS}")
    content = bytearray(inode.durable)
    for at in SLOT_POSITIONS:
        if not inode.is_certain(at, SLOT_SIZE):
            content[at] ^= 0xFF
    return decode_durable_point(bytes(content))


def offset_left(disk: FakeDisk) -> int | None:
    witness = left_by_the_worst_cut(disk)
    return witness.offset if witness is not None else None


def with_durable_witness(count: int) -> tuple[FakeDisk, Log]:
    disk = new_disk()
    log = opened(disk)
    for _ in range(count):
        put(log, batch())
        sync_witness(log)
    assert offset_left(disk) == log.next_offset
    return disk, log


def sync_witness(log: Log) -> None:
    file = log.witness.begin_sync()
    assert file is not None
    file.sync()
    log.witness.end_sync(is_durable=True)


def test_after_a_failed_sync_of_it_the_durable_one_is_not_written_over() -> None:
    """However often it is written and its sync fails again."""
    disk, log = with_durable_witness(3)
    for _ in range(4):
        put(log, batch(), batch())
        assert log.witness.begin_sync() is not None
        log.witness.end_sync(is_durable=False)
        put(log, batch())
        assert offset_left(disk) == 3
    sync_witness(log)
    assert offset_left(disk) == log.next_offset


def test_a_sync_that_failed_for_another_file_may_have_made_it_durable() -> None:
    """Several are synced at once and fail together: what may be durable is not written over next."""
    disk = new_disk()
    log = opened(disk)
    for count in range(1, 6):
        put(log, batch())
        file = log.witness.begin_sync()
        assert file is not None
        file.sync()
        log.witness.end_sync(is_durable=False)
        assert offset_left(disk) == count
    put(log, batch())
    assert offset_left(disk) == 5


def test_while_a_sync_of_it_is_under_way_the_durable_one_is_not_written_over() -> None:
    """Nor is the one that is on its way: when the sync has ended, it counts."""
    disk, log = with_durable_witness(3)
    put(log, batch())
    file = log.witness.begin_sync()
    assert file is not None
    covered = disk.inode(file.path).begin_sync()
    for _ in range(3):
        put(log, batch())
        assert offset_left(disk) == 3
    assert log.witness.begin_sync() is None, "there is no slot for a third"
    disk.inode(file.path).end_sync(covered)
    log.witness.end_sync(is_durable=True)
    for _ in range(3):
        put(log, batch())
        assert offset_left(disk) == 4
    sync_witness(log)
    assert offset_left(disk) == log.next_offset


def test_after_a_kill_it_is_not_known_which_one_is_durable_and_none_is_lost() -> None:
    """The newest may be in memory only, and what was written last is found and told before anything is synced."""
    for generations in range(1, 8):
        disk, log = with_durable_witness(generations)
        put(log, batch())
        assert log.witness.begin_sync() is not None
        put(log, batch())
        stage(log, batch())
        log.flush()

        again = opened(disk)
        assert (offset_left(disk) or 0) >= generations
        put(again, batch())
        assert (offset_left(disk) or 0) >= generations
        again.close()
        assert offset_left(disk) == again.next_offset == generations + 4
