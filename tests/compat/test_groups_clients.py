"""Real consumers in groups: they share, they do not lose their place, and they leave nothing unread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from asking.connection import Connection
from asking.members import MEMBERS, ConfluentMember, Member, is_shared, poll_until, read_and_commit, write
from asking.requests import create_topic

Enter = Callable[..., Any]


@pytest.fixture
def enter(broker_address: str) -> Iterator[Enter]:
    """enter(kind, group, topics...) makes a member, closed at the end of the test."""
    with ExitStack() as stack:

        def make(kind: str, group: str, *topics: str, **settings: Any) -> Member:
            member = MEMBERS[kind](broker_address, group, topics, **settings)
            stack.callback(lambda: member.close())
            return member

        yield make


@pytest.fixture(params=MEMBERS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def leave(member: Any) -> None:
    """Close a member before the end of its test."""
    member.close()
    member.close = lambda: None


def values(count: int, first: int = 0) -> list[str]:
    return [f"v{number}" for number in range(first, first + count)]


def test_a_group_shares_partitions_and_each_record_is_read_once(
    connection: Connection, broker_address: str, topic: str, enter: Enter, kind: str
) -> None:
    """Three members, six partitions: everybody has some, and together they read everything once."""
    create_topic(connection, topic, 6)
    members = [enter(kind, topic, topic) for _ in range(3)]
    poll_until(members, lambda _: is_shared(members, 6))
    write(broker_address, topic, values(60))
    found = poll_until(members, lambda found: len(found) >= 60)
    assert sorted(read.value for read in found) == sorted(values(60))


def test_who_leaves_is_followed_by_the_others(
    connection: Connection, broker_address: str, topic: str, enter: Enter, kind: str
) -> None:
    """The partitions of a member that left are read on from where it committed; nothing committed comes again."""
    create_topic(connection, topic, 4)
    first, second = members = [enter(kind, topic, topic) for _ in range(2)]
    poll_until(members, lambda _: is_shared(members, 4))
    write(broker_address, topic, values(20))
    read_and_commit(members, set(values(20)))
    leave(first)
    write(broker_address, topic, values(20, 20))
    later = poll_until([second], lambda found: {read.value for read in found} >= set(values(20, 20)))
    assert len(second.assignment()) == 4
    assert {read.value for read in later} == set(values(20, 20))


def test_groups_do_not_take_from_each_other(
    connection: Connection, broker_address: str, topic: str, enter: Enter, kind: str
) -> None:
    """Two groups at once: each reads everything."""
    create_topic(connection, topic, 2)
    write(broker_address, topic, values(20))
    for group in (f"{topic}-a", f"{topic}-b"):
        member = enter(kind, group, topic)
        found = poll_until([member], lambda found: len(found) >= 20)
        assert sorted(read.value for read in found) == sorted(values(20))


def test_a_group_goes_on_where_it_was(
    connection: Connection, broker_address: str, topic: str, enter: Enter, kind: str
) -> None:
    """A consumer that comes back late gets all it missed, and nothing that it had committed."""
    create_topic(connection, topic)
    write(broker_address, topic, values(10))
    member = enter(kind, topic, topic)
    poll_until([member], lambda found: len(found) >= 10)
    assert member.commit()
    leave(member)
    write(broker_address, topic, values(500, 10))
    again = enter(kind, topic, topic)
    found = poll_until([again], lambda found: len(found) >= 500)
    assert [read.value for read in found] == values(500, 10)


def test_a_pattern_takes_in_topics_that_come_later(
    connection: Connection, broker_address: str, topic: str, enter: Enter, kind: str
) -> None:
    """One that is made after the group has begun is read as well."""
    create_topic(connection, f"{topic}.one")
    write(broker_address, f"{topic}.one", ["first"])
    member = enter(kind, topic, f"^{topic}\\..*")
    found = poll_until([member], lambda found: len(found) >= 1)
    assert member.commit()
    create_topic(connection, f"{topic}.two")
    write(broker_address, f"{topic}.two", ["second"])
    found += poll_until([member], lambda found: len(found) >= 1)
    assert [(read.topic, read.value) for read in found] == [(f"{topic}.one", "first"), (f"{topic}.two", "second")]


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_every_way_of_assigning_works(connection: Connection, topic: str, enter: Enter, strategy: str) -> None:
    """librdkafka's assignors: a second member gets its share; cooperative-sticky takes only that from the first."""
    create_topic(connection, topic, 6)
    settings = {"partition_assignment_strategy": strategy}
    first: ConfluentMember = enter("confluent", topic, topic, **settings)
    poll_until([first], lambda _: len(first.assignment()) == 6)
    second = enter("confluent", topic, topic, **settings)
    poll_until([first, second], lambda _: is_shared([first, second], 6))
    assert [len(member.assignment()) for member in (first, second)] == [3, 3]
    assert first.revoked == ([3] if strategy == "cooperative-sticky" else [6])


def test_a_static_member_that_returns_disturbs_nobody(
    connection: Connection, broker_address: str, topic: str, enter: Enter
) -> None:
    """KIP-345: the other keeps its partitions all the time, and the one that returns has its own again."""
    create_topic(connection, topic, 4)
    other: ConfluentMember = enter("confluent", topic, topic, instance="other")
    one = enter("confluent", topic, topic, instance="one")
    poll_until([one, other], lambda _: is_shared([one, other], 4))
    had, kept = one.assignment(), other.assignment()
    before = list(other.revoked)
    leave(one)
    again = enter("confluent", topic, topic, instance="one")
    poll_until([again, other], lambda _: is_shared([again, other], 4))
    assert (again.assignment(), other.assignment(), other.revoked) == (had, kept, before)


def test_a_group_moves_between_the_protocols_while_it_runs(
    connection: Connection, broker_address: str, topic: str, enter: Enter
) -> None:
    """Members of both share the partitions; when the last of one protocol has left, the other goes on alone."""
    create_topic(connection, topic, 4)
    classic = enter("confluent", topic, topic)
    poll_until([classic], lambda _: len(classic.assignment()) == 4)
    newer = enter("confluent-newer-protocol", topic, topic)
    poll_until([classic, newer], lambda _: is_shared([classic, newer], 4))
    write(broker_address, topic, values(40))
    found = poll_until([classic, newer], lambda found: {read.value for read in found} >= set(values(40)))
    assert {read.value for read in found} == set(values(40))
    leave(newer)
    poll_until([classic], lambda _: len(classic.assignment()) == 4)
    again = enter("confluent-newer-protocol", topic, topic)
    poll_until([classic, again], lambda _: is_shared([classic, again], 4))
    leave(classic)
    poll_until([again], lambda _: len(again.assignment()) == 4)
