"""Ids of events that came without one."""

from __future__ import annotations

from uuid import UUID

from penstock.edge.intake import CHANCE_AT_ONCE, fresh_ids


def test_no_id_is_given_twice_however_many_are_asked_for_at_once() -> None:
    """The random bytes behind them are fetched for many at a time: none may be used again."""
    asked = (1, 1, 7, CHANCE_AT_ONCE, 3, 500, *(1 for _ in range(1000)))
    ids = [id for count in asked for id in fresh_ids(count)]
    assert len(set(ids)) == len(ids) == sum(asked)
    chance = {UUID(id).int & ((1 << 62) - 1) for id in ids}
    assert len(chance) == len(ids), "told apart by chance, not by their time alone"
    assert {(UUID(id).version, UUID(id).variant) for id in ids} == {(7, "specified in RFC 4122")}
