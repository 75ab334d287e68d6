"""What waits for a slow client is bounded, and what is given up is counted or told."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.live.backlog import Backlog, shared_policy

BYTES_MAX = 50


class Item(NamedTuple):
    number: int
    key: bytes | None
    json: bytes
    event: str = "t"


def item(number: int, key: bytes | None = None, size: int = 1) -> Item:
    return Item(number, key, b"x" * size)


def numbers(items: list[Item]) -> list[int]:
    return [each.number for each in items]


# A script of what happens to a backlog: a message of some key and size comes, or (None) the client takes some.
STEPS = st.lists(st.none() | st.tuples(st.sampled_from([None, b"a", b"b", b"c"]), st.integers(0, 30)), max_size=60)


def played(policy: str, steps: list[tuple[bytes | None, int] | None]) -> tuple[Backlog[Item], list[Item], list[Item]]:
    """The backlog after a script, what was offered, and what was taken."""
    backlog: Backlog[Item] = Backlog(policy, 5, BYTES_MAX)
    offered: list[Item] = []
    taken: list[Item] = []
    for step in steps:
        if step is None:
            taken += backlog.take(10)
        else:
            offered.append(item(len(offered), *step))
            backlog.offer(offered[-1], is_slow=True)
        assert len(backlog) <= 5
        assert backlog.size_bytes <= max(BYTES_MAX, *(len(each.json) for each in offered), 0)
    return backlog, offered, taken


def rest_of(backlog: Backlog[Item]) -> list[Item]:
    rest: list[Item] = []
    while some := backlog.take(1_000):
        rest += some
    assert backlog.size_bytes == 0
    return rest


@given(STEPS)
def test_a_client_that_is_disconnected_got_everything_before(steps: list[tuple[bytes | None, int] | None]) -> None:
    """What was taken is where it can resume: a beginning of what was offered, with no hole."""
    backlog, offered, taken = played("disconnect", steps)
    assert taken == offered[: len(taken)]
    assert backlog.dropped == backlog.conflated == 0
    if backlog.overflowed:
        assert len(backlog) == 0
    else:
        assert taken + rest_of(backlog) == offered


@given(STEPS)
def test_drop_oldest_keeps_the_order_and_counts_what_it_drops(steps: list[tuple[bytes | None, int] | None]) -> None:
    """Taken and dropped together are everything; the latest message is never the one dropped."""
    backlog, offered, taken = played("drop_oldest", steps)
    got = taken + rest_of(backlog)
    assert len(got) + backlog.take_dropped() == len(offered)
    assert backlog.take_dropped() == 0
    assert numbers(got) == sorted(numbers(got))
    assert got[-1:] == offered[-1:]
    assert not backlog.overflowed


@given(STEPS)
def test_conflate_ends_with_the_latest_of_each_key(steps: list[tuple[bytes | None, int] | None]) -> None:
    """Nothing is lost but what a later message of the same key stands for, and what is counted as dropped."""
    backlog, offered, taken = played("conflate", steps)
    got = taken + rest_of(backlog)
    assert len(got) + backlog.conflated + backlog.dropped == len(offered)
    assert numbers(got) == sorted(numbers(got))
    if not backlog.dropped:
        latest = {each.key: each for each in offered if each.key is not None}
        assert {each.key: each for each in got if each.key is not None} == latest
        assert [each for each in got if each.key is None] == [each for each in offered if each.key is None]


def test_conflate_replaces_only_what_has_the_same_topic_and_key() -> None:
    """Two topics may use the same keys for different things."""
    backlog: Backlog[Item] = Backlog("conflate", 10, BYTES_MAX)
    for each in (Item(0, b"k", b"x", "t"), Item(1, b"k", b"x", "u"), Item(2, b"k", b"x", "t")):
        backlog.offer(each, is_slow=True)
    assert numbers(backlog.take(100)) == [1, 2]


def test_a_message_larger_than_all_the_room_is_still_delivered() -> None:
    """Alone it may pass the bound, or it would never be sent."""
    for policy in ("disconnect", "drop_oldest", "conflate"):
        backlog: Backlog[Item] = Backlog(policy, 5, BYTES_MAX)
        backlog.offer(item(0, size=3 * BYTES_MAX), is_slow=True)
        assert numbers(backlog.take(1)) == [0], policy


def test_a_burst_costs_a_client_nothing_that_takes_it_all() -> None:
    """The bounds hold from the moment in which it no longer takes what it is given."""
    for policy, kept in (("disconnect", []), ("drop_oldest", list(range(96, 101))), ("conflate", list(range(96, 101)))):
        backlog: Backlog[Item] = Backlog(policy, 5, BYTES_MAX)
        for number in range(100):
            backlog.offer(item(number), is_slow=False)
        assert (len(backlog), backlog.dropped, backlog.overflowed) == (100, 0, False)
        backlog.offer(item(100), is_slow=True)
        assert numbers(backlog.take(100)) == kept


@pytest.mark.parametrize(
    ("declared", "shared"),
    [
        ([("conflate", 10), ("conflate", 5)], ("conflate", 5)),
        ([("conflate", 10), ("drop_oldest", 50)], ("disconnect", 10)),
    ],
)
def test_a_pattern_over_deliveries_that_differ_hides_nothing(
    declared: list[tuple[str, int]], shared: tuple[str, int]
) -> None:
    """What all declare holds; where they differ, a slow client is told and not silently dropped."""
    assert shared_policy(declared) == shared
