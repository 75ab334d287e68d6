"""Kafka's own programs as judges of transactions: the Java client speaks transaction version 2 (KIP-890)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking.connection import Connection
from asking.owners import committed_offset, read_values
from asking.requests import create_topic
from asking.transactions import Owner, fetch_committed

from penstock.drills.broker_process import BrokerProcess
from proof.oracle.tools import java_command, run_tool

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
TOOL_S = 180.0
MESSAGES = 300


def fine(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def copier_args(address: str, source: str, target: str, name: str) -> list[str]:
    return [
        "--broker-list", address, "--input-topic", source, "--input-partition", "0", "--output-topic", target,
        "--max-messages", str(MESSAGES), "--transaction-size", "30", "--transactional-id", name,
        "--consumer-group", name, "--use-group-metadata", "--enable-random-aborts",
    ]  # fmt: skip


def fill(address: str, topic: str) -> None:
    said = run_tool(
        "org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", address, "--topic", topic,
        "--max-messages", str(MESSAGES), timeout=TOOL_S,
    )  # fmt: skip
    assert json.loads(fine(said).splitlines()[-1])["acked"] == MESSAGES


@pytest.mark.timeout(600)
def test_the_java_client_writes_in_transactions(connection: Connection, broker_address: str, topic: str) -> None:
    """Kafka's load generator, with a commit every 50 ms."""
    create_topic(connection, topic)
    said = run_tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--num-records", "2000", "--record-size", "100",
        "--throughput", "-1", "--bootstrap-server", broker_address, "--transactional-id", topic,
        "--transaction-duration-ms", "50", timeout=TOOL_S,
    )  # fmt: skip
    assert "2000 records sent" in fine(said)
    assert len(read_values(broker_address, topic, 2000, committed=True)) == 2000


@pytest.mark.timeout(600)
def test_kafkas_copier_copies_each_record_once(connection: Connection, broker_address: str, topic: str) -> None:
    """Through random aborts: reads, writes and positions are one."""
    source, target = f"{topic}-in", f"{topic}-out"
    for name in (source, target):
        create_topic(connection, name)
    fill(broker_address, source)
    fine(run_tool(COPIER, *copier_args(broker_address, source, target, topic), timeout=TOOL_S))
    want = [str(number) for number in range(MESSAGES)]
    assert read_values(broker_address, target, MESSAGES, committed=True) == want
    assert committed_offset(broker_address, topic, source) == MESSAGES


@pytest.mark.timeout(600)
def test_kafkas_tool_shows_and_aborts_transactions(connection: Connection, broker_address: str, topic: str) -> None:
    """List, describe, describe-producers, and the abort of one that hangs."""
    create_topic(connection, topic)
    owner = Owner(connection, topic)
    owner.init()
    assert owner.send(topic, "hangs") == 0

    def told(*args: str) -> str:
        tool = "org.apache.kafka.tools.TransactionsCommand"
        return fine(run_tool(tool, "--bootstrap-server", broker_address, *args, timeout=TOOL_S))

    assert topic in told("list")
    assert "Ongoing" in told("describe", "--transactional-id", topic)
    assert str(owner.producer_id) in told("describe-producers", "--topic", topic, "--partition", "0")
    told("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    part = fetch_committed(connection, topic).responses[0].partitions[0]
    assert part.last_stable_offset == 2


def test_kafkas_tool_reads_our_markers(process: BrokerProcess) -> None:
    """Both kinds, as Kafka writes them; what we put into the header of an abort disturbs nobody."""
    with Connection(process.address) as connection:
        create_topic(connection, "marked")
        owner = Owner(connection, "marker")
        owner.init()
        for is_commit in (True, False):
            assert owner.send("marked", "value") == 0
            assert owner.end(commit=is_commit) == 0
    (segment,) = process.data.glob("topics/*/0/*.log")
    tool = "org.apache.kafka.tools.DumpLogSegments"
    said = fine(run_tool(tool, "--files", str(segment), "--print-data-log", timeout=TOOL_S))
    assert [f"endTxnMarker: {kind}" in said for kind in ("COMMIT", "ABORT")] == [True, True]
    assert said.count("isvalid: true") == 4


@pytest.fixture
def process(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        yield broker


def lines_of(copier: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert copier.stdout is not None
    for line in copier.stdout:
        if line.startswith("{"):
            yield json.loads(line)


@pytest.mark.timeout(600)
def test_kafkas_copier_copies_each_record_once_through_kills(process: BrokerProcess) -> None:
    """kill -9 of the copier in the middle of its transactions, then of the broker under the next one."""
    with Connection(process.address) as connection:
        for name in ("in", "out"):
            create_topic(connection, name)
    fill(process.address, "in")
    command = java_command(COPIER, *copier_args(process.address, "in", "out", "copier"))
    statuses = []
    for kill_copier in (True, False, None):
        copier = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        copied = 0
        for said in lines_of(copier):
            if said.get("stage") == "ProcessLoop" and kill_copier is False and said["totalProcessed"] >= copied + 60:
                copied = said["totalProcessed"]
                process.kill()
                process.start()
            elif said.get("stage") == "ProcessLoop" and kill_copier and said["remaining"] <= MESSAGES // 2:
                os.kill(copier.pid, signal.SIGKILL)
        statuses.append(copier.wait(TOOL_S))
        assert copier.stdout is not None
        copier.stdout.close()
        if committed_offset(process.address, "copier", "in") == MESSAGES:
            break
    assert statuses[0] == -signal.SIGKILL, statuses
    assert len(statuses) > 1, statuses
    want = [str(number) for number in range(MESSAGES)]
    deadline = time.monotonic() + TOOL_S
    while (found := read_values(process.address, "out", MESSAGES, committed=True)) != want:
        assert time.monotonic() < deadline, (len(found), found[-3:])
