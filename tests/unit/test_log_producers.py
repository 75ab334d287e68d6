"""Idempotent producers: a repeat is recognised, a gap refused, and only what was written counts."""

from __future__ import annotations

import pytest
from stage.batches import NOW_MS, batch
from stage.logs import new_disk, opened, put

from penstock.queue.log.producer_snapshot import decode_snapshot, encode_snapshot
from penstock.queue.log.producers import REMEMBERED, Fault, ProducerTable, Sent

TOP = 2**31 - 1


def table(*sent: tuple[int, int, int, int, int], limit: int = 100) -> ProducerTable:
    """Producers after (id, epoch, first, count, offset) were stored."""
    made = ProducerTable(limit)
    for now, (producer_id, epoch, first, count, offset) in enumerate(sent):
        made.admit(producer_id, epoch, first, count, offset, now)
        made.commit()
    return made


def test_a_repeat_of_the_last_five_batches_is_recognised() -> None:
    """As many as a client keeps in flight; the sixth is no longer known, and is no new batch either."""
    known = table(*((1, 0, 10 * n, 10, 100 * n) for n in range(7)))
    for n in range(2, 7):
        assert known.check(1, 0, 10 * n, 10) == Sent(10 * n, 10 * n + 9, 100 * n, 100 * n + 10)
    for n in (0, 1):
        assert known.check(1, 0, 10 * n, 10) is Fault.OUT_OF_ORDER
    assert REMEMBERED == 5
    assert known.check(1, 0, 70, 3) is None


@pytest.mark.parametrize(("first", "count"), [(9, 1), (11, 1), (0, 9), (0, 11), (5, 5), (12, 4)])
def test_what_neither_follows_nor_repeats_is_refused(first: int, count: int) -> None:
    """A gap would reorder records for ever, an overlap would double some."""
    assert table((1, 0, 0, 10, 0)).check(1, 0, first, count) is Fault.OUT_OF_ORDER


def test_sequences_begin_again_after_the_largest() -> None:
    """2^31 - 1 is followed by 0, also inside of a batch."""
    known = table((1, 0, TOP - 1, 2, 0))
    assert known.check(1, 0, 0, 5) is None
    assert known.check(1, 0, 1, 5) is Fault.OUT_OF_ORDER
    across = table((1, 0, TOP, 3, 0))
    assert across.check(1, 0, 2, 1) is None
    assert across.check(1, 0, TOP, 3) == Sent(TOP, 1, 0, 3)


def test_a_newer_epoch_begins_at_zero_and_fences_the_older() -> None:
    """The one that was replaced must not write any more."""
    known = table((1, 3, 50, 10, 0))
    assert known.check(1, 4, 60, 1) is Fault.OUT_OF_ORDER
    assert known.check(1, 4, 0, 1) is None
    assert known.check(1, 2, 60, 1) is Fault.FENCED
    known.admit(1, 4, 0, 1, 10, 0)
    known.commit()
    assert known.check(1, 3, 60, 1) is Fault.FENCED
    assert known.check(1, 4, 1, 1) is None
    assert len(known.known[1].batches) == 1


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Its earlier batches may have been removed by retention."""
    assert table().check(1, 0, 1000, 5) is None


def test_an_unknown_producer_whose_first_batch_failed_may_not_go_on_behind_it() -> None:
    """The retry must come first, or the two are stored in the wrong order."""
    known = table()
    known.admit(1, 0, 0, 5, 0, 0)
    known.discard()
    assert known.check(1, 0, 5, 5) is Fault.OUT_OF_ORDER
    assert known.check(1, 0, 0, 5) is None
    known.admit(1, 0, 0, 5, 0, 0)
    known.commit()
    assert known.check(1, 0, 5, 5) is None


def test_staged_batches_count_for_the_next_one_and_vanish_with_a_failed_group() -> None:
    """State changes only when the write has succeeded."""
    known = table((1, 0, 0, 5, 0))
    known.admit(1, 0, 5, 5, 5, 0)
    assert known.check(1, 0, 10, 1) is None
    assert known.check(1, 0, 5, 5) == Sent(5, 9, 5, 10)
    known.discard()
    assert known.check(1, 0, 10, 1) is Fault.OUT_OF_ORDER
    assert known.check(1, 0, 5, 5) is None


def test_producers_not_heard_of_for_long_are_forgotten() -> None:
    """The last use counts, not the first."""
    known = table((1, 0, 0, 1, 0), (2, 0, 0, 1, 1), (3, 0, 0, 1, 2), (1, 0, 1, 1, 3))
    known.expire(2)
    assert sorted(known.known) == [1, 3]
    known.expire(9)
    assert not known.known


def test_the_longest_silent_go_when_there_are_too_many() -> None:
    """A limit, so that ids given out freely cannot fill the memory."""
    known = table(*((n % 5, 0, n // 5, 1, n) for n in range(5)), (0, 0, 1, 1, 5), (9, 0, 0, 1, 6), limit=5)
    assert list(known.known) == [2, 3, 4, 0, 9]


def test_a_snapshot_comes_back_as_it_went() -> None:
    """Producers, epochs, batches, last use and their order."""
    known = table((7, 1, 0, 3, 0), (8, 0, TOP, 2, 3), (7, 1, 3, 1, 5))
    again = ProducerTable(100)
    assert decode_snapshot(encode_snapshot(known, 6), again) == 6
    assert list(again.known.items()) == list(known.known.items())


@pytest.mark.parametrize("close", [True, False])
def test_producers_are_known_after_a_restart(close: bool) -> None:
    """From the snapshot, from the log behind it, or from the log alone."""
    disk = new_disk()
    log = opened(disk)
    put(log, *(batch([b"a"] * 2, producer=(4, 1, 2 * n)) for n in range(3)))
    log.save_checkpoint()
    put(log, *(batch([b"a"] * 2, producer=(4, 1, 2 * n)) for n in range(3, 7)))
    if close:
        log.close()
    again = opened(disk, now_ms=NOW_MS + 1)
    assert again.producers.known[4].batches == log.producers.known[4].batches
    assert again.producers.check(4, 1, 12, 2) == Sent(12, 13, 12, 14)
    assert again.producers.check(4, 1, 14, 1) is None
    assert again.producers.check(4, 0, 14, 1) is Fault.FENCED
