"""`penstock consume` at a damaged record: says what can be done, or reads the rest and tells what it left out."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.drills.broker_process import BrokerProcess

DEADLINE_S = 60.0
BATCHES, RECORDS = 5, 40


def penstock(*args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    words = [str(Path(sys.executable).with_name("penstock")), *args]
    return subprocess.run(words, input=given, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def batch(number: int) -> list[str]:
    return [f"batch {number} record {record}" for record in range(RECORDS)]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A broker whose topic t has two damaged batches of five."""
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        for number in range(BATCHES):
            done = penstock("produce", "t", "--broker", broker.address, given="\n".join(batch(number)))
            assert done.returncode == 0, done.stderr
        broker.stop()
        (segment,) = (tmp_path / "data" / "topics").glob("*/0/*.log")
        data = bytearray(segment.read_bytes())
        for number in (1, 4):
            data[data.index(batch(number)[7].encode())] ^= 1
        segment.write_bytes(data)
        broker.start()
        yield broker.address


def test_a_damaged_record_ends_reading_with_a_next_step(address: str) -> None:
    """What stands before it is printed."""
    done = penstock("consume", "t", "--until-end", "--broker", address)
    assert done.returncode == 1
    assert done.stdout.splitlines() == batch(0)
    assert f"offset {RECORDS} of partition 0 of t is damaged" in done.stderr
    assert all(way in done.stderr for way in ("penstock doctor --data", "--from OFFSET", "--skip-damaged"))


def test_a_partition_without_its_files_is_refused_with_a_next_step(tmp_path: Path) -> None:
    """Whatever asks for it; the broker says why in one line, however often it is asked."""
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        assert penstock("produce", "t", "--broker", broker.address, given="one").returncode == 0
        assert penstock("consume", "t", "--group", "g", "--until-end", "--broker", broker.address).returncode == 0
        broker.stop()
        (segment,) = (tmp_path / "data" / "topics").glob("*/0/*.log")
        segment.unlink()
        broker.start()
        for words in (("topics", "describe", "t"), ("consume", "t", "--until-end"), ("groups", "describe", "g")):
            done = penstock(*words, "--broker", broker.address)
            assert done.returncode == 1
            assert "its log and /health say why, 'penstock doctor --data DIR' says what can be done" in done.stderr
        lost = penstock("produce", "t", "--value", "two", "--timeout", "3", "--broker", broker.address)
        assert "or cannot store it, which its log and /health would say" in lost.stderr
        assert broker.said.count("partition cannot be opened") == 1
        assert broker.get("/health")[0] == 503


def test_the_port_for_metrics_is_not_taken_for_a_broker(tmp_path: Path) -> None:
    """It is said at once what it speaks, not after a while that it said nothing."""
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        done = penstock("topics", "list", "--broker", f"127.0.0.1:{broker.metrics_port}")
    assert done.returncode == 1
    assert f"127.0.0.1:{broker.metrics_port} speaks HTTP, not Kafka's protocol" in done.stderr


def test_damaged_records_are_skipped_when_asked_and_told(address: str) -> None:
    """Every whole record is printed; status 1 says that not all are."""
    done = penstock("consume", "t", "--until-end", "--skip-damaged", "--broker", address)
    assert done.stdout.splitlines() == [*batch(0), *batch(2), *batch(3)]
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"penstock: skipped offsets {first * RECORDS} to {(first + 1) * RECORDS - 1} of partition 0: damaged."
        for first in (1, 4)
    ]
