"""Whatever is killed, a query goes on from its checkpoint, and nothing stored is left without its result."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving.analyze import Analyze, until_gone
from driving.records import Record, read, send

from penstock.client.topics import admin_client
from penstock.drills.broker_process import BrokerProcess

BURST = 300


@pytest.fixture(scope="module")
def counting(broker: BrokerProcess, folder: Path) -> Iterator[Analyze]:
    analyze = Analyze("counting.py", broker.address, folder / "data")
    yield analyze
    analyze.end()


def burst(broker: BrokerProcess, first: int) -> None:
    numbers = range(first, first + BURST)
    send(broker.address, "numbers", [{"id": f"n{n}", "card": f"card-{n % 7}", "n": n} for n in numbers])


def ids(found: list[Record]) -> set[str]:
    return {record.json["id"] for record in found}


def totals(found: list[Record]) -> dict[str, int]:
    """The word on each card that knows most events: without a key the topic keeps no order."""
    ordered = sorted((record.json for record in found), key=lambda result: result["events"])
    return {result["card"]: result["total"] for result in ordered}


def expected(count: int) -> dict[str, int]:
    return {f"card-{card}": sum(n for n in range(count) if n % 7 == card) for card in range(7)}


def test_a_join_that_spark_refuses_in_real_time_falls_back_by_itself(counting: Analyze, broker: BrokerProcess) -> None:
    """Only Spark knows how it would join: its refusal is taken for the reason, and the query runs."""
    counting.start()
    burst(broker, 0)
    results = read(broker.address, "joined", lambda found: len(found) >= 10)
    assert ids(results) == {f"n{n}" for n in range(10)}
    statuses = read(
        broker.address,
        "penstock.queries",
        lambda found: any(r.key == "refused_by_spark" and r.json["mode"] == "microbatch" for r in found),
    )
    status = [r.json for r in statuses if r.key == "refused_by_spark"][-1]
    assert str(status["mode_reason"]).endswith("not in Real-Time Mode")


def test_kill_of_the_driver_loses_nothing_and_leaves_no_orphan(counting: Analyze, broker: BrokerProcess) -> None:
    """kill -9 in the middle of a batch: the JVM dies with it, and the next run does it again from the checkpoint."""
    read(broker.address, "copies", lambda found: len(ids(found)) >= BURST)
    burst(broker, BURST)
    read(broker.address, "copies", lambda found: len(ids(found)) >= BURST + 1)
    children = counting.children
    assert children
    counting.kill()
    until_gone(children)
    counting.start()
    copies = read(broker.address, "copies", lambda found: len(ids(found)) >= 2 * BURST)
    assert ids(copies) == {f"n{n}" for n in range(2 * BURST)}
    sums = read(broker.address, "totals", lambda found: totals(found) == expected(2 * BURST))
    assert max(record.json["events"] for record in sums) <= 2 * BURST


def test_repeats_after_a_crash_carry_the_same_identity(counting: Analyze, broker: BrokerProcess) -> None:
    """At least once: a result that comes twice comes with the same id and source, so that a reader can drop it."""
    copies = read(broker.address, "copies", lambda found: len(ids(found)) >= 2 * BURST)
    assert len({record.headers["penstock-source"] for record in copies}) == 2 * BURST
    assert {record.headers["penstock-id"] for record in copies} == ids(copies)


def test_kill_of_the_jvm_ends_the_process_so_that_it_is_started_again(counting: Analyze, broker: BrokerProcess) -> None:
    jvm = counting.children[0]
    burst(broker, 2 * BURST)
    os.kill(jvm, signal.SIGKILL)
    assert counting.wait() == 1
    assert "Spark's JVM ended with status -9" in counting.said
    counting.start()
    copies = read(broker.address, "copies", lambda found: len(ids(found)) >= 3 * BURST)
    assert ids(copies) == {f"n{n}" for n in range(3 * BURST)}
    read(broker.address, "totals", lambda found: totals(found) == expected(3 * BURST))


def test_a_topic_that_was_made_anew_parks_the_query_instead_of_skipping(
    counting: Analyze, broker: BrokerProcess
) -> None:
    """Its checkpoint points behind the end of the topic: going on would skip what comes next."""
    numbers = read(
        broker.address,
        "penstock.queries",
        lambda found: any(r.key == "copy" and sum(_committed(r)) == 3 * BURST for r in found),
    )
    assert numbers
    assert counting.stop() == 0
    admin = admin_client(broker.address)
    admin.delete_topics(["numbers"])["numbers"].result(30)
    counting.prepare()
    counting.start()
    said = counting.wait_for_line(lambda line: line.startswith("query copy: parked"))
    assert "the topic ends at 0" in said


def _committed(record: Record) -> list[int]:
    return list(record.json["positions"].get("numbers", {}).values())
