"""Who gets which partition: the assignors, and patterns of topics."""

from __future__ import annotations

from uuid import UUID

import pytest
from stage.newer import Newer, stage_with

from penstock.errors import ErrorCode
from penstock.queue.groups.consumer import pattern as patterns
from penstock.queue.groups.consumer.assignors import ASSIGNORS, Wish
from penstock.queue.groups.consumer.pattern import Patterns
from penstock.queue.groups.consumer.regex import PatternError


@pytest.mark.parametrize("name", ASSIGNORS)
def test_assignors_give_every_partition_to_one_who_wants_it(name: str) -> None:
    """As even as can be; who wants nothing gets nothing; the same question has the same answer."""
    a, b, c = (UUID(int=number) for number in (1, 2, 3))
    wishes = [Wish("m1", (a, b), {}), Wish("m2", (a, b), {}), Wish("m3", (b,), {}), Wish("m4", (), {})]
    given = ASSIGNORS[name](wishes, {a: 4, b: 6, c: 2})
    assert sorted(part for parts in given.values() for part in parts) == [
        (t, i) for t, n in ((a, 4), (b, 6)) for i in range(n)
    ]
    for wish in wishes:
        assert {part[0] for part in given[wish.member_id]} <= set(wish.topics)
    assert given == ASSIGNORS[name](wishes, {a: 4, b: 6, c: 2})
    sizes = sorted(len(given[name]) for name in ("m1", "m2", "m3"))
    assert sizes in ([3, 3, 4], [2, 4, 4])


def test_uniform_moves_no_more_than_it_must() -> None:
    topic = UUID(int=1)
    had = {"m1": {(topic, n): None for n in range(6)}, "m2": {(topic, n): None for n in range(6, 12)}, "m3": {}}
    given = ASSIGNORS["uniform"]([Wish(name, (topic,), parts) for name, parts in had.items()], {topic: 12})
    assert [len(parts) for parts in given.values()] == [4, 4, 4]
    kept = sum(part in had[name] for name, parts in given.items() for part in parts)
    assert kept == 8


def test_a_pattern_cannot_hang_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would take a backtracking matcher longer than the universe lasts is matched, or refused, at once."""
    names = ["a" * 248 + "c", "x" * 249] * 20
    for pattern in ("(a*)*b", "(a|a)*b", "(x+x+)+y", "(.*.*.*)*y"):
        assert Patterns().matching(pattern, names, 1) == ()
    for pattern in (
        "a{250}{250}",
        "((((a{9}){9}){9}){9}){9}",
        "(" * 40 + ")" * 40,
        "a" * 1001,
        "(",
        "[a",
        "a**",
        "\\1",
        "(?=a)",
    ):
        with pytest.raises(PatternError):
            Patterns().matching(pattern, names, 1)
    monkeypatch.setattr(patterns, "WORK_FREE", 100)
    monkeypatch.setattr(patterns, "WORK_PER_CHAR", 0)
    with pytest.raises(PatternError, match="costs too much"):
        Patterns().matching("(a|b|c|d)*x", names, 1)
    stage = stage_with()
    wrong = Newer(stage, "one", subscribed_topic_names=[], subscribed_topic_regex="(")
    assert wrong.beat().error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
