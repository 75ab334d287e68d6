"""The commands as a shell runs them, against our broker and against Apache Kafka: the same words, the same results."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 60.0
NAMES = ["SIGINT", "SIGTERM"]

Penstock = Callable[..., "subprocess.CompletedProcess[bytes]"]


def environment(address: str) -> dict[str, str]:
    return os.environ | {"PENSTOCK_ADDRESS": address}


def command(*args: str) -> list[str]:
    return [str(Path(sys.executable).with_name("penstock")), *args]


@pytest.fixture
def penstock(broker_address: str) -> Penstock:
    """penstock(*args, given=bytes) runs a command to its end."""

    def run(*args: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command(*args),
            input=given,
            capture_output=True,
            timeout=DEADLINE_S,
            env=environment(broker_address),
            check=False,
        )

    return run


def fine(done: subprocess.CompletedProcess[bytes]) -> str:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def refused(done: subprocess.CompletedProcess[bytes], status: int = 1) -> str:
    said = done.stderr.decode()
    assert done.returncode == status, said
    assert "Traceback" not in said
    return said


def records(penstock: Penstock, topic: str, *args: str) -> list[dict[str, Any]]:
    lines = fine(penstock("consume", topic, "--until-end", "--json", *args)).splitlines()
    return [json.loads(line) for line in lines]


def test_a_topic_is_created_listed_described_and_deleted(penstock: Penstock, topic: str) -> None:
    """The life of a topic, with settings that differ from the defaults."""
    fine(penstock("topics", "create", topic, "--partitions", "3", "--config", "retention.ms=86400000"))
    listed = json.loads(fine(penstock("topics", "list", "--json")))
    assert {"name": topic, "partitions": 3} in listed
    (told,) = json.loads(fine(penstock("topics", "describe", topic, "--json")))
    assert told["name"] == topic
    assert len(told["id"]) == 22
    assert told["settings"] == {"retention.ms": "86400000"}
    assert [(p["partition"], p["start"], p["end"]) for p in told["partitions"]] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    text = fine(penstock("topics", "describe", topic))
    assert "retention.ms=86400000" in text
    assert fine(penstock("topics", "delete", topic, "--yes")) == f"deleted {topic}\n"
    assert topic not in [each["name"] for each in json.loads(fine(penstock("topics", "list", "--json")))]


def test_settings_and_partitions_are_altered(penstock: Penstock, topic: str) -> None:
    """Set, unset, and more partitions, in one command."""
    fine(penstock("topics", "create", topic, "--partitions", "1", "--config", "retention.ms=86400000"))
    change = ["--partitions", "2", "--config", "max.message.bytes=2000000", "--unset", "retention.ms"]
    fine(penstock("topics", "alter", topic, *change))
    (told,) = json.loads(fine(penstock("topics", "describe", topic, "--json")))
    assert told["settings"] == {"max.message.bytes": "2000000"}
    assert len(told["partitions"]) == 2
    assert "has 2 partition" in refused(penstock("topics", "alter", topic, "--partitions", "1"), 2)


def test_a_refused_topic_is_refused_in_a_sentence(penstock: Penstock, topic: str) -> None:
    """Twice the same name, a setting that is none, a name that cannot be, a topic that is not there."""
    fine(penstock("topics", "create", topic))
    assert "--if-missing" in refused(penstock("topics", "create", topic))
    assert fine(penstock("topics", "create", topic, "--if-missing")).strip() == f"{topic} is there already"
    more = fine(penstock("topics", "create", topic, "--if-missing", "--partitions", "77"))
    assert "is there already, with " in more
    said = refused(penstock("topics", "create", f"{topic}-2", "--config", "no.such.setting=1"), 2)
    assert "no.such.setting" in said
    assert "penstock config explain" in said
    refused(penstock("topics", "create", "a/b"), 2)
    refused(penstock("topics", "create", f"{topic}-2", "--replicas", "9"), 2)
    for verb in (["describe"], ["delete", "--yes"]):
        assert f"there is no topic {topic}-3" in refused(penstock("topics", *verb, f"{topic}-3"))


def test_delete_asks_and_takes_no_for_an_answer(penstock: Penstock, topic: str) -> None:
    """Nothing is deleted by mistake."""
    fine(penstock("topics", "create", topic))
    refused(penstock("topics", "delete", topic, given=b"n\n"))
    fine(penstock("topics", "describe", topic))
    fine(penstock("topics", "delete", topic, given=b"y\n"))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_go_in_and_come_out(penstock: Penstock, topic: str, codec: str) -> None:
    """With any codec, in order, and counted on standard error."""
    lines = [f"line {number}" for number in range(1000)]
    done = penstock("produce", topic, "--compression", codec, given="\n".join(lines).encode())
    fine(done)
    assert done.stderr.decode() == f"created {topic} with 1 partition: there was no such topic\n1000 acknowledged\n"
    assert fine(penstock("consume", topic, "--until-end")).splitlines() == lines


def test_keys_headers_and_bytes_survive(penstock: Penstock, topic: str) -> None:
    """Binary values too: escaped for people, exact in JSON."""
    fine(penstock("topics", "create", topic, "--partitions", "2"))
    given = b"a=1\nb=\xff\x00\x1b[31m\na=2\n"
    fine(penstock("produce", topic, "--key-separator", "=", "--header", "source=test", given=given))
    found = {(record["key"], json.dumps(record["value"])) for record in records(penstock, topic)}
    assert found == {("a", '"1"'), ("a", '"2"'), ("b", '{"base64": "/wAbWzMxbQ=="}')}
    lines = fine(penstock("consume", topic, "--until-end", "--show", "headers,key")).splitlines()
    assert sorted(lines) == ["a\tsource=test\t1", "a\tsource=test\t2", "b\tsource=test\t\\xff\\x00\\x1b[31m"]


def test_a_key_goes_where_javas_clients_put_it(penstock: Penstock, topic: str) -> None:
    """By the hashes that Kafka's own tests state for these keys."""
    hashes = {"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536}
    fine(penstock("topics", "create", topic, "--partitions", "7"))
    fine(penstock("produce", topic, "--key-separator", ":", given="".join(f"{key}:\n" for key in hashes).encode()))
    found = {record["key"]: record["partition"] for record in records(penstock, topic)}
    assert found == {key: (value & 0x7FFFFFFF) % 7 for key, value in hashes.items()}


def test_a_partition_can_be_named(penstock: Penstock, topic: str) -> None:
    """For writing and for reading."""
    fine(penstock("topics", "create", topic, "--partitions", "3"))
    fine(penstock("produce", topic, "--partition", "2", "--value", "here"))
    assert [record["partition"] for record in records(penstock, topic)] == [2]
    assert records(penstock, topic, "--partition", "1") == []
    for verb in (["consume"], ["produce", "--value", "x"]):
        said = refused(penstock(*verb, topic, "--partition", "7"))
        assert f"{topic} has no partition 7, only 0 to 2" in said


def test_reading_begins_where_asked(penstock: Penstock, topic: str) -> None:
    """By offset, from the end, by time, and not outside of what is there."""
    fine(penstock("produce", topic, "--value", "0", "--value", "1", "--value", "2", "--value", "3"))

    def values(*args: str) -> str:
        return "".join(fine(penstock("consume", topic, "--until-end", *args)).split())

    assert values() == "0123"
    assert values("--from", "2") == "23"
    assert values("--from", "-1") == "3"
    assert values("--from", "end") == ""
    assert values("--from", "2020-01-01") == "0123"
    assert values("--from", "2100-01-01T00:00:00Z") == ""
    assert values("--max", "2") == "01"
    written = records(penstock, topic, "--from", "2")[0]["timestamp"]
    assert values("--from", written).endswith("23")
    assert "holds offsets 0 to 4" in refused(penstock("consume", topic, "--from", "5"))


def test_a_failed_line_is_named_and_the_others_are_written(penstock: Penstock, topic: str) -> None:
    """Status 1, and nobody has to guess which."""
    done = penstock("produce", topic, "--key-separator", ":", given=b"a:1\nbroken\nb:2\n")
    said = refused(done)
    assert "line 2 was not acknowledged: it has no ':'" in said
    assert said.endswith("2 acknowledged, 1 failed\n")
    too_large = penstock("produce", topic, given=b"x" * 2_000_000 + b"\nsmall\n")
    assert "line 1 was not acknowledged: it has 2000000 bytes, and max.message.bytes of" in refused(too_large)
    assert [record["value"] for record in records(penstock, topic)] == ["1", "2", "small"]


@pytest.mark.parametrize("acks", ["0", "1"])
def test_weaker_acks_are_there_for_who_asks(penstock: Penstock, topic: str, acks: str) -> None:
    """And nobody is told of an acknowledgement that was not given."""
    fine(penstock("topics", "create", topic))
    done = penstock("produce", topic, "--acks", acks, "--value", "x")
    fine(done)
    assert ("acknowledged by nobody" in done.stderr.decode()) == (acks == "0")


@pytest.mark.parametrize("name", NAMES)
def test_following_shows_records_at_once_and_ends_cleanly(
    penstock: Penstock, broker_address: str, topic: str, name: str
) -> None:
    """A reader at the end sees what is written later; a signal ends it with status 0."""
    fine(penstock("produce", topic, "--value", "before"))
    process = subprocess.Popen(
        command("consume", topic), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(broker_address)
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"before\n"
        fine(penstock("produce", topic, "--value", "after"))
        assert process.stdout.readline() == b"after\n"
        process.send_signal(getattr(signal, name))
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr.read() == b""


def test_a_reader_that_has_enough_ends_consume(penstock: Penstock, broker_address: str, topic: str) -> None:
    """As in `penstock consume t | head -1`: quiet, status 0."""
    fine(penstock("produce", topic, given=b"a long enough line\n" * 50_000))
    process = subprocess.Popen(
        command("consume", topic), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(broker_address)
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(DEADLINE_S) == 0
        assert process.stderr.read() == b""


def test_nobody_at_the_address_is_said_at_once(penstock: Penstock) -> None:
    """With what to do."""
    said = refused(penstock("topics", "list", "--broker", "127.0.0.1:1"))
    assert "no broker answers at 127.0.0.1:1 (connection refused): start one with 'penstock broker'" in said
    assert "there is no topic" in refused(penstock("consume", "no-such-topic"))


def test_a_broker_that_says_nothing_is_waited_for_no_longer_than_was_said() -> None:
    """One that is frozen takes connections and answers none of them."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        address = f"127.0.0.1:{frozen.getsockname()[1]}"
        asked = command("produce", "anything", "--value", "one", "--timeout", "1", "--broker", address)
        done = subprocess.run(asked, capture_output=True, timeout=DEADLINE_S, check=False)
    assert "the broker did not answer within 1 s" in refused(done)
