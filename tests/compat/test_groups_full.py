"""`penstock consume --group` at a broker that has no room for it: says why, and what makes room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asking.commands import fine, refused, run_penstock
from asking.members import ConfluentMember, poll_until, write

from penstock.drills.broker_process import BrokerProcess


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A broker with one record, for one group of one member."""
    settings = {"groups_max": 1, "group_members_max": 1}
    with BrokerProcess(tmp_path / "data", tmp_path, settings=settings) as broker:
        fine(run_penstock(broker.address, "topics", "create", "t"))
        write(broker.address, "t", ["one"])
        yield broker.address


def test_who_finds_no_room_in_or_for_a_group_is_told_which(address: str) -> None:
    """In one sentence each: too many groups, or too many members of this one."""
    member = ConfluentMember(address, "first", ["t"])
    try:
        poll_until([member], len)
        other = refused(run_penstock(address, "consume", "t", "--group", "second", "--until-end"))
        same = refused(run_penstock(address, "consume", "t", "--group", "first", "--until-end"))
    finally:
        member.close()
    assert other.splitlines() == [
        "penstock: second: the broker has no room for another group (groups_max, group_bytes_max): "
        "'penstock groups delete' makes room, or raise the limit."
    ]
    assert "the broker takes no more members into it (group_members_max" in same
    assert "'penstock groups describe first' names them" in same
    fine(run_penstock(address, "groups", "delete", "first", "--yes"))
    assert fine(run_penstock(address, "consume", "t", "--group", "second", "--until-end")) == "one\n"
