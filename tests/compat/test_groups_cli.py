"""`penstock groups` and `penstock consume --group`, against our broker and against Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from asking.commands import fine, refused, run_penstock
from asking.members import ConfluentMember, poll_until, write
from confluent_kafka import Producer

Penstock = Callable[..., Any]


@pytest.fixture
def penstock(broker_address: str) -> Penstock:
    """penstock(*args) runs a command to its end."""
    return lambda *args, **given: run_penstock(broker_address, *args, **given)


def consumed(penstock: Penstock, topic: str, *args: str) -> list[str]:
    lines = fine(penstock("consume", topic, "--group", topic, "--json", *args)).splitlines()
    return sorted(json.loads(line)["value"] for line in lines)


def described(penstock: Penstock, group: str) -> Any:
    (told,) = json.loads(fine(penstock("groups", "describe", group, "--json")))
    return told


def lags(penstock: Penstock, group: str) -> list[int]:
    return [part["lag"] for part in described(penstock, group)["partitions"]]


def test_a_group_reads_on_where_it_was(penstock: Penstock, broker_address: str, topic: str) -> None:
    """Each run shows what the runs before did not; the lag says what is left."""
    fine(penstock("topics", "create", topic, "--partitions", "2"))
    write(broker_address, topic, [f"v{number}" for number in range(10)], partition=0)
    write(broker_address, topic, [f"w{number}" for number in range(5)], partition=1)
    first = consumed(penstock, topic, "--max", "6")
    assert sum(lag for lag in lags(penstock, topic) if lag is not None) <= 9
    rest = consumed(penstock, topic, "--until-end")
    assert sorted(first + rest) == sorted([f"v{n}" for n in range(10)] + [f"w{n}" for n in range(5)])
    assert lags(penstock, topic) == [0, 0]
    write(broker_address, topic, ["late"], partition=1)
    assert lags(penstock, topic) == [0, 1]
    assert consumed(penstock, topic, "--max", "1") == ["late"]


def test_groups_are_listed_and_described(penstock: Penstock, broker_address: str, topic: str) -> None:
    """With state, members, and who reads which partition."""
    fine(penstock("topics", "create", topic, "--partitions", "2"))
    write(broker_address, topic, ["one", "two"], partition=0)
    member = ConfluentMember(broker_address, topic, [topic], client_id="reader")
    try:
        poll_until([member], lambda found: len(found) >= 2)
        member.commit()
        told = described(penstock, topic)
        assert (told["state"], told["assignor"], len(told["members"])) == ("stable", "range", 1)
        rows = [(part["partition"], part["committed"], part["end"], part["lag"]) for part in told["partitions"]]
        assert rows == [(0, 2, 2, 0), (1, None, 0, None)]
        (who,) = told["members"]
        assert (who["client"], {part["member"] for part in told["partitions"]}) == ("reader", {who["id"]})
        head, *rows = fine(penstock("groups", "describe", topic)).splitlines()[-3:]
        assert head.split() == ["TOPIC", "PARTITION", "COMMITTED", "START", "END", "LAG", "MEMBER"]
        assert all(who["id"].startswith(row.split()[-1]) for row in rows)
        assert "has members" in refused(penstock("groups", "delete", topic, "--yes"))
        for trial in ([], ["--dry-run"]):
            told = refused(penstock("groups", "reset", topic, "--to", "earliest", *trial))
            assert f"{topic} has members: stop them" in told
        some = penstock("groups", "describe", f"{topic}-s", topic)
        assert f"there is no group {topic}-s" in refused(some)
        assert f"group     {topic}\n" in some.stdout.decode()
    finally:
        member.close()
    listed = json.loads(fine(penstock("groups", "list", "--json")))
    assert {"group": topic, "state": "empty", "type": "classic"} in listed
    assert topic in fine(penstock("groups", "list"))


def test_what_a_group_has_no_position_for_is_counted_apart(penstock: Penstock, broker_address: str, topic: str) -> None:
    """A lag of 0 never hides records that the group has not begun to read."""
    fine(penstock("topics", "create", topic, "--partitions", "2"))
    for partition, values in ((0, ["one"]), (1, ["two", "three"])):
        write(broker_address, topic, values, partition=partition)
    fine(penstock("groups", "reset", topic, "--topic", topic, "--partition", "0", "--to", "latest"))
    told = described(penstock, topic)
    assert (told["lag"], told["never_read"], lags(penstock, topic)) == (0, 2, [0, None]), "also without a member"
    member = ConfluentMember(broker_address, topic, [topic])
    try:
        poll_until([member], lambda found: len(found) >= 2)
        told = described(penstock, topic)
        assert (told["lag"], told["never_read"], lags(penstock, topic)) == (0, 2, [0, None])
        assert "0, and 2 records where the group has no position yet" in fine(penstock("groups", "describe", topic))
    finally:
        member.close()


def test_a_group_is_reset(penstock: Penstock, broker_address: str, topic: str) -> None:
    """To both ends, an offset, the last few, a time; a trial changes nothing."""
    fine(penstock("topics", "create", topic))
    write(broker_address, topic, [f"v{number}" for number in range(10)])
    consumed(penstock, topic, "--until-end")
    words = (("earliest", 10), ("end", 0), ("beginning", 10), ("latest", 0), ("now", 0))
    for where, lag in (*words, ("4", 6), ("-3", 3), ("2020-01-01", 10), ("2100-01-01", 0)):
        fine(penstock("groups", "reset", topic, "--to", where))
        assert lags(penstock, topic) == [lag], where
    fine(penstock("groups", "reset", topic, "--to", "earliest", "--dry-run"))
    assert lags(penstock, topic) == [0]
    assert "use --to earliest or --to latest" in refused(penstock("groups", "reset", topic, "--to", "999999"))
    fine(penstock("groups", "reset", topic, "--to", "8", "--topic", topic, "--partition", "0"))
    assert consumed(penstock, topic, "--until-end") == ["v8", "v9"]


def test_a_reset_is_told_in_json(penstock: Penstock, broker_address: str, topic: str) -> None:
    """A partition without a position has null, as in the other commands."""
    fine(penstock("topics", "create", topic))
    write(broker_address, topic, ["one", "two"])
    to_end = json.loads(fine(penstock("groups", "reset", topic, "--topic", topic, "--to", "end", "--json")))
    assert to_end == [{"topic": topic, "partition": 0, "from": None, "to": 2}]
    back = json.loads(fine(penstock("groups", "reset", topic, "--to", "beginning", "--json", "--dry-run")))
    assert back == [{"topic": topic, "partition": 0, "from": 2, "to": 0}]
    assert lags(penstock, topic) == [0]


def test_a_reset_tells_apart_who_is_not_there(penstock: Penstock, broker_address: str, topic: str) -> None:
    """A group whose members have committed nothing is there; a reset that begins a new group says so."""
    fine(penstock("topics", "create", topic))
    write(broker_address, topic, ["one"])
    member = ConfluentMember(broker_address, topic, [topic])
    try:
        poll_until([member], lambda found: len(found) >= 1)
        assert f"{topic} has members: stop them" in refused(penstock("groups", "reset", topic, "--to", "earliest"))
    finally:
        member.close()
    mistyped = penstock("groups", "reset", f"{topic}-s", "--topic", topic, "--to", "earliest", "--dry-run")
    fine(mistyped)
    assert f"there was no group {topic}-s: it would begin with" in mistyped.stderr.decode()
    assert f"there is no group {topic}-s" in refused(penstock("groups", "describe", f"{topic}-s"))
    meant = penstock("groups", "reset", f"{topic}-new", "--topic", topic, "--to", "earliest")
    fine(meant)
    assert f"there was no group {topic}-new: it begins with" in meant.stderr.decode()
    assert lags(penstock, f"{topic}-new") == [1]


def test_lag_is_never_a_phantom(penstock: Penstock, broker_address: str, topic: str) -> None:
    """What retention or a deletion took is not waited for."""
    fine(penstock("topics", "create", topic))
    write(broker_address, topic, [f"v{number}" for number in range(10)])
    consumed(penstock, topic, "--max", "2")
    delete_records(broker_address, topic, 7)
    assert lags(penstock, topic) == [3]
    delete_records(broker_address, topic, 10)
    assert lags(penstock, topic) == [0]


def test_lag_is_0_where_only_markers_are_left(penstock: Penstock, broker_address: str, topic: str) -> None:
    """Of committed and of aborted transactions. One record more is seen, and so is an open transaction."""
    fine(penstock("topics", "create", topic))
    producer = Producer({"bootstrap.servers": broker_address, "transactional.id": topic})
    producer.init_transactions(60.0)

    def transact(*values: str) -> None:
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        producer.flush()

    transact("one", "two")
    producer.commit_transaction(60.0)
    assert consumed(penstock, topic, "--until-end") == ["one", "two"]
    (part,) = described(penstock, topic)["partitions"]
    assert (part["committed"], part["end"], part["lag"]) == (2, 3, 0)
    transact("never")
    producer.abort_transaction(60.0)
    told = described(penstock, topic)
    assert (told["lag"], told["partitions"][0]["end"]) == (0, 5)
    transact("three")
    assert lags(penstock, topic) == [4], "an open transaction may be committed"
    producer.commit_transaction(60.0)
    assert lags(penstock, topic) == [5]
    assert consumed(penstock, topic, "--until-end") == ["three"]
    assert lags(penstock, topic) == [0]


def delete_records(address: str, topic: str, before: int) -> None:
    from asking.admins import ADMINS

    ADMINS["confluent"](address, None).delete_records(topic, before)  # type: ignore[arg-type]  # it writes no files


def test_a_group_is_deleted(penstock: Penstock, broker_address: str, topic: str) -> None:
    fine(penstock("topics", "create", topic))
    write(broker_address, topic, ["one"])
    consumed(penstock, topic, "--until-end")
    refused(penstock("groups", "delete", topic, given=b"n\n"))
    assert "--yes goes on without asking" in refused(penstock("groups", "delete", topic))
    both = penstock("groups", "delete", f"{topic}-s", topic, "--yes")
    assert f"there is no group {topic}-s" in refused(both)
    assert both.stdout.decode() == f"deleted {topic}\n"
    assert f"there is no group {topic}" in refused(penstock("groups", "describe", topic))
    assert f"there is no group {topic}" in refused(penstock("groups", "delete", topic, "--yes"))
    assert f"there is no group {topic}" in refused(penstock("groups", "reset", topic, "--to", "latest"))
    assert consumed(penstock, topic, "--until-end") == ["one"]


def test_what_cannot_be_said_of_a_group_is_refused(penstock: Penstock, topic: str) -> None:
    """Offsets and partitions are the group's to keep; a topic that is not there is no group's."""
    for wrong in (["--from", "5"], ["--partition", "0"]):
        assert "--group" in refused(penstock("consume", topic, "--group", "g", *wrong), 2)
    assert f"there is no topic {topic}" in refused(penstock("consume", topic, "--group", "g"))
    assert "none of beginning, earliest, end, latest, now" in refused(
        penstock("groups", "reset", topic, "--to", "yesterday"), 2
    )
