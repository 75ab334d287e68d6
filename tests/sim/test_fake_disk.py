"""The fake disk is as cruel as a real one."""

from __future__ import annotations

import errno
from random import Random

import pytest

from proof.sim.disk import FakeDisk
from proof.sim.inode import Mood


def made(seed: int = 1) -> FakeDisk:
    disk = FakeDisk(Random(seed))
    file = disk.create("log")
    file.write(0, (b"durable.",))
    file.sync()
    disk.sync_folder("")
    return disk


def after_cut(disk: FakeDisk, mood: Mood = Mood.MIXED) -> bytes:
    disk.cut_power(mood)
    file = disk.open("log")
    return file.read(0, file.size())


def test_what_was_synced_survives_a_power_cut() -> None:
    """In every mood of the power cut."""
    for mood in Mood:
        assert after_cut(made(), mood) == b"durable."


def test_what_was_not_synced_is_kept_torn_or_gone_in_any_combination() -> None:
    """Two writes leave many pictures, also the second without the first."""
    pictures = set()
    for seed in range(200):
        disk = made(seed)
        disk.open("log").write(8, (b"a" * 8,))
        disk.open("log").write(16, (b"b" * 8,))
        pictures.add(after_cut(disk))

    assert b"durable." in pictures
    assert b"durable." + b"a" * 8 + b"b" * 8 in pictures
    assert b"durable." + bytes(8) + b"b" * 8 in pictures
    assert any(len(picture) not in (8, 16, 24) for picture in pictures)


def test_a_name_is_forgotten_until_its_folder_is_synced() -> None:
    """Syncing a file does not make its name durable."""
    disk = made()
    file = disk.create("new")
    file.write(0, (b"x",))
    file.sync()

    disk.cut_power(Mood.NOTHING)

    assert disk.names("") == ["log"]


def test_a_rename_and_a_removal_are_undone_until_the_folder_is_synced() -> None:
    """Both change a folder, not a file."""
    disk = made()
    disk.rename("log", "old")
    disk.cut_power(Mood.NOTHING)
    assert disk.names("") == ["log"]

    disk.remove("log")
    disk.cut_power(Mood.NOTHING)
    assert disk.names("") == ["log"]


def test_a_sync_covers_only_what_was_written_before_it_began() -> None:
    """A sync has a beginning and an end."""
    disk = made()
    file = disk.open("log")
    file.write(8, (b"before",))
    covered = file.begin_sync()
    file.write(14, (b"during",))
    file.end_sync(covered)

    assert after_cut(disk, Mood.NOTHING) == b"durable.before"


def test_after_a_failed_sync_the_next_one_lies() -> None:
    """It succeeds, and what the first did not write stays unwritten."""
    disk = made()
    file = disk.open("log")
    file.write(8, (b"lost",))
    disk.faults.rates = {"sync": 1.0}
    with pytest.raises(OSError, match="Input/output"):
        file.sync()
    disk.faults.calm_down()
    file.sync()

    assert file.read(8, 4) == b"lost"
    assert after_cut(disk, Mood.NOTHING) == b"durable."


def test_a_full_disk_takes_a_part_of_a_write_first() -> None:
    """Then it raises, and takes writes again when there is room."""
    disk = made()
    file = disk.open("log")
    disk.faults.room = 3
    with pytest.raises(OSError, match="No space") as raised:
        file.write(8, (b"12345",))
    assert raised.value.errno == errno.ENOSPC
    assert file.read(8, 9) == b"123"

    file.write(0, (b"in place",))
    file.truncate(8)
    file.write(8, (b"45",))
    assert file.read(0, 99) == b"in place45"


def test_a_killed_process_loses_nothing_that_it_wrote() -> None:
    """The page cache lives on: a new handle reads what the old one wrote."""
    disk = made()
    disk.open("log").write(8, (b"unsynced",))

    assert disk.open("log").read(8, 8) == b"unsynced"


def test_what_left_the_memory_is_at_hand_again_once_it_was_read() -> None:
    """Whoever reads it first waits, and it is known for how many bytes."""
    disk = made()
    file = disk.open("log")
    assert file.is_at_hand(0, 8)
    disk.forget()
    assert not file.is_at_hand(0, 8)

    assert file.read(0, 8) == b"durable."

    assert file.is_at_hand(0, 8)
    assert disk.pages.cold_reads == [("log", 8)]


def test_a_power_cut_leaves_nothing_in_memory() -> None:
    disk = made()
    disk.cut_power(Mood.EVERYTHING)

    assert not disk.open("log").is_at_hand(0, 8)
