"""Whatever is killed, a query goes on from its checkpoint, and nothing stored is left without its result."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving.analyze import Analyze, until_gone
from driving.records import Record, read, send

from penstock.drills.broker_process import BrokerProcess

BURST = 300
TRIES = 3


class Counting(Analyze):
    """The app, and how many events were sent to it."""

    sent = 0

    def burst(self, broker: BrokerProcess) -> None:
        numbers = range(self.sent, self.sent + BURST)
        send(broker.address, "numbers", [{"id": f"n{n}", "card": f"card-{n % 7}", "n": n} for n in numbers])
        self.sent += BURST

    def kill_in_the_middle(self, broker: BrokerProcess) -> None:
        """kill -9 of the driver once the first results of a burst are there."""
        before = self.sent
        self.burst(broker)
        read(broker.address, "copies", lambda found: len(ids(found)) > before)
        self.kill()

    def copies(self, broker: BrokerProcess) -> list[Record]:
        """All copies, once none is missing."""
        return read(broker.address, "copies", lambda found: len(ids(found)) >= self.sent)


@pytest.fixture(scope="module")
def counting(broker: BrokerProcess, folder: Path) -> Iterator[Counting]:
    analyze = Counting("counting.py", broker.address, folder / "data")
    yield analyze
    analyze.end()


def ids(found: list[Record]) -> set[str]:
    return {record.json["id"] for record in found}


def left_by_spark(data: Path) -> set[Path]:
    """The folder that Spark makes for every session, and a native library that it unpacks."""
    tmp = data / "analyze" / "tmp"
    folders, libraries = set(tmp.glob("artifacts-*")), set(tmp.glob("liblz4-java-*.so"))
    assert folders
    assert libraries
    return folders | libraries


def totals(found: list[Record]) -> dict[str, int]:
    """The result of each card that counts most events: during a read, an older one may come later."""
    ordered = sorted((record.json for record in found), key=lambda result: result["events"])
    return {result["card"]: result["total"] for result in ordered}


def expected(count: int) -> dict[str, int]:
    return {f"card-{card}": sum(n for n in range(count) if n % 7 == card) for card in range(7)}


def test_a_join_that_spark_refuses_in_real_time_falls_back_by_itself(counting: Counting, broker: BrokerProcess) -> None:
    """Only Spark knows how it would join: its refusal is taken for the reason, and the query runs."""
    counting.start()
    counting.burst(broker)
    results = read(broker.address, "joined", lambda found: len(found) >= 10)
    assert ids(results) == {f"n{n}" for n in range(10)}
    statuses = read(
        broker.address,
        "penstock.queries",
        lambda found: any(r.json["query"] == "refused_by_spark" and r.json["mode"] == "microbatch" for r in found),
    )
    status = [r.json for r in statuses if r.json["query"] == "refused_by_spark"][-1]
    assert str(status["mode_reason"]).endswith("not in Real-Time Mode")


def test_kill_of_the_driver_loses_nothing_and_leaves_no_orphan(counting: Counting, broker: BrokerProcess) -> None:
    """kill -9 in the middle of a batch: the JVM dies with it, and the next run does it again from the checkpoint."""
    counting.copies(broker)
    children = counting.children
    assert children
    counting.kill_in_the_middle(broker)
    until_gone(children)
    counting.start()
    assert ids(counting.copies(broker)) == {f"n{n}" for n in range(counting.sent)}
    sums = read(broker.address, "totals", lambda found: totals(found) == expected(counting.sent))
    assert max(record.json["events"] for record in sums) <= counting.sent
    # All rows of a key are in one partition, so the last one read is the newest, also of those that were done again.
    last = {record.key: record for record in sums}
    assert set(last) == {f"card-{card}" for card in range(7)}
    assert {key: record.json["total"] for key, record in last.items()} == expected(counting.sent)
    for record in sums:
        assert record.key == record.json["card"]
        assert (record.headers["penstock-kind"], record.headers["penstock-key-columns"]) == ("upsert", "card")


def test_repeats_after_a_crash_carry_the_same_identity(counting: Counting, broker: BrokerProcess) -> None:
    """At least once: a result that comes twice comes with the same id and source, so that a reader can drop it."""
    copies = counting.copies(broker)
    # Rarely Spark commits in the very moment before the kill, and has nothing to repeat.
    for _ in range(TRIES):
        if len(copies) > len(ids(copies)):
            break
        counting.kill_in_the_middle(broker)
        counting.start()
        copies = counting.copies(broker)
    sources: dict[str, list[str]] = {}
    for record in copies:
        assert record.headers["penstock-id"] == record.json["id"]
        sources.setdefault(record.json["id"], []).append(record.headers["penstock-source"])
    repeated = [found for found in sources.values() if len(found) > 1]
    assert repeated, "nothing was repeated: this test saw nothing"
    assert all(len(set(found)) == 1 for found in repeated)
    assert len({found[0] for found in sources.values()}) == counting.sent


def test_kill_of_the_jvm_ends_the_process_so_that_it_is_started_again(
    counting: Counting, broker: BrokerProcess
) -> None:
    """Whatever it had in a temp folder is below --data, and gone with the next start."""
    jvm = counting.children[0]
    counting.burst(broker)
    mapped = {
        Path(line.split(maxsplit=5)[5]) for line in Path(f"/proc/{jvm}/maps").read_text().splitlines() if "/" in line
    }
    os.kill(jvm, signal.SIGKILL)
    assert counting.wait() == 1
    assert "Spark's JVM ended with status -9" in counting.said
    left = left_by_spark(counting.data)
    system = Path(tempfile.gettempdir())
    assert {path for path in mapped if path.parent == system} == set(), "the JVM's own are below --data"
    assert not list(system.glob(f"hsperfdata_*/{jvm}"))
    counting.start()
    assert not any(path.exists() for path in left), "a start leaves nothing of the one before"
    assert ids(counting.copies(broker)) == {f"n{n}" for n in range(counting.sent)}
    read(broker.address, "totals", lambda found: totals(found) == expected(counting.sent))
