"""Kafka's own tools on groups: the console consumer and kafka-consumer-groups."""

from __future__ import annotations

import subprocess

import pytest
from asking.connection import Connection
from asking.java import run_java
from asking.members import ConfluentMember, poll_until, write
from asking.requests import create_topic

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def read(address: str, group: str, protocol: str, count: int, *where: str) -> list[str]:
    """So many records as a member of a group, from the beginning where it has no position."""
    options = ["--max-messages", str(count), "--timeout-ms", "60000", "--command-property=auto.offset.reset=earliest"]
    options.append(f"--command-property=group.protocol={protocol}")
    done = run_java(CONSOLE, "--bootstrap-server", address, "--group", group, *where, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def groups(address: str, *args: str) -> subprocess.CompletedProcess[str]:
    return run_java(GROUPS, "--bootstrap-server", address, *args)


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    """The table that a tool printed."""
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [
        line.split() for line in done.stdout.splitlines() if line.strip() and not line.startswith("Consumer group")
    ]
    return [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_consumer_reads_in_a_group_and_comes_back(
    connection: Connection, broker_address: str, topic: str, protocol: str
) -> None:
    """What it has read it does not read again; a pattern is a subscription like any other."""
    create_topic(connection, topic)
    write(broker_address, topic, ["one", "two", "three"])
    assert read(broker_address, topic, protocol, 2, "--topic", topic) == ["one", "two"]
    assert read(broker_address, topic, protocol, 1, "--include", f"{topic[:-2]}.*") == ["three"]


def test_the_groups_tool_tells_moves_and_deletes(connection: Connection, broker_address: str, topic: str) -> None:
    """List, describe with lag and members, reset in several ways, delete positions, delete the group."""
    create_topic(connection, topic, 2)
    create_topic(connection, f"{topic}-other")
    write(broker_address, topic, [f"v{number}" for number in range(10)], partition=0)
    write(broker_address, f"{topic}-other", ["x"])
    member = ConfluentMember(broker_address, topic, [topic, f"{topic}-other"], client_id="reader")
    try:
        poll_until([member], lambda found: len(found) >= 11)
        member.commit()
        write(broker_address, topic, ["more"], partition=0)
        (state,) = rows(groups(broker_address, "--describe", "--group", topic, "--state"))
        assert (state["STATE"], state["#MEMBERS"]) == ("Stable", "1")
        (told,) = rows(groups(broker_address, "--describe", "--group", topic, "--members"))
        assert (told["CLIENT-ID"], told["#PARTITIONS"], told["HOST"]) == ("reader", "3", "/127.0.0.1")
        parts = {
            (row["TOPIC"], row["PARTITION"]): row
            for row in rows(groups(broker_address, "--describe", "--group", topic))
        }
        assert [parts[topic, "0"][name] for name in ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")] == ["10", "11", "1"]
        busy = groups(broker_address, "--reset-offsets", "--group", topic, "--all-topics", "--to-earliest", "--execute")
        assert "is inactive" in busy.stdout + busy.stderr
    finally:
        member.close()
    for way, offset in ((["--to-earliest"], "0"), (["--shift-by", "3"], "3"), (["--to-latest"], "11")):
        moved = groups(broker_address, "--reset-offsets", "--group", topic, "--topic", f"{topic}:0", *way, "--execute")
        assert [row["NEW-OFFSET"] for row in rows(moved)] == [offset]
    dropped = groups(broker_address, "--delete-offsets", "--group", topic, "--topic", f"{topic}-other")
    assert "Successful" in dropped.stdout, dropped.stdout
    listed = groups(broker_address, "--list", "--state", "Empty")
    assert topic in listed.stdout
    gone = groups(broker_address, "--delete", "--group", topic)
    assert "was successful" in gone.stdout, gone.stdout
    missing = groups(broker_address, "--describe", "--group", topic)
    assert "not found" in missing.stdout + missing.stderr
