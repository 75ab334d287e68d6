"""emit: the changes of a result, its final rows, or all of it after each batch; through kill -9 of the driver."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driving.analyze import Analyze
from driving.records import Record, read, send

from penstock.drills.broker_process import BrokerProcess


def view(page: str, minute: int, visitor: str = "v") -> dict[str, Any]:
    return {"page": page, "visitor": visitor, "at": f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"}


@pytest.fixture(scope="module")
def analyze(broker: BrokerProcess, folder: Path) -> Iterator[Analyze]:
    with Analyze("emitting.py", broker.address, folder / "emitting") as running:
        yield running


def table(found: list[Record]) -> dict[str | None, dict[str, Any]]:
    """The latest row of each key."""
    rows = {record.key: record for record in found}
    return {key: record.json for key, record in rows.items() if record.value is not None}


def until_table(broker: BrokerProcess, topic: str, wanted: dict[str, dict[str, Any]]) -> list[Record]:
    return read(broker.address, topic, lambda found: table(found) == wanted)


def test_each_emit_writes_its_rows(analyze: Analyze, broker: BrokerProcess) -> None:
    queue = broker.address
    send(
        queue,
        "views",
        [view("a", 1), view("a", 2), view("b", 3, "w"), view("c", 61), view("c", 62), view("c", 63)],
        None,
    )
    send(queue, "shown", [{"ad": ad, "cost": 1.5, "at": view("", 5)["at"]} for ad in ("x", "y")], "ad")
    send(queue, "clicked", [{"ad": "x", "at": view("", 6)["at"]}], None)
    top = until_table(broker, "top", {"1": {"page": "c", "views": 3}, "2": {"page": "a", "views": 2}})
    assert {record.headers["penstock-kind"] for record in top} == {"upsert"}
    assert {record.headers["penstock-key-columns"] for record in top} == {"rank"}
    until_table(broker, "exact_top", {"1": {"page": "c", "views": 3}, "2": {"page": "a", "views": 2}})
    until_table(broker, "counts", {"b": {"page": "b", "views": 1}, "c": {"page": "c", "views": 3}})
    # What the queries remember of their results outlives a kill: what leaves them now has a tombstone.
    analyze.process.send_signal(signal.SIGKILL)
    analyze.wait()
    analyze.start()
    send(queue, "views", [view("b", 64), view("b", 65), view("b", 66)], None)
    until_table(broker, "top", {"1": {"page": "b", "views": 4}, "2": {"page": "c", "views": 3}})
    found = until_table(broker, "counts", {"c": {"page": "c", "views": 3}})
    assert [record.key for record in found if record.value is None] == ["b"]
    until_table(broker, "three", {"c": {"page": "c", "views": 3}})
    until_table(broker, "exact_top", {"1": {"page": "b", "views": 4}, "2": {"page": "c", "views": 3}})
    send(queue, "views", [view("c", 67)], None)
    gone = read(queue, "three", lambda found: table(found) == {} and found != [])[-1]
    assert gone.headers == {"penstock-query": "three", "penstock-kind": "upsert", "penstock-key-columns": "page"}
    # The end of time: every window closes.
    send(queue, "views", [view("z", 60 * 20, "z"), view("z", 60 * 20 + 20, "z")], None)
    for topic in ("shown", "clicked"):
        send(queue, topic, [{"ad": "z", "cost": 0.0, "at": view("", 60 * 20)["at"]}], None)
    hour = "2026-01-01T{:02}:00:00.000000Z"
    hours = {
        f"a|{hour.format(0)}": {"page": "a", "hour": "2026-01-01T00:00:00.000000Z", "views": 2},
        f"b|{hour.format(0)}": {"page": "b", "hour": "2026-01-01T00:00:00.000000Z", "views": 1},
        f"b|{hour.format(1)}": {"page": "b", "hour": "2026-01-01T01:00:00.000000Z", "views": 3},
        f"c|{hour.format(1)}": {"page": "c", "hour": "2026-01-01T01:00:00.000000Z", "views": 4},
    }
    found = until_table(broker, "hourly", hours)
    assert len(found) == len(hours)
    assert {record.headers["penstock-kind"] for record in found} == {"final"}
    best = read(queue, "top_of_hour", lambda found: len(found) >= 4)
    assert {record.headers["penstock-key-columns"] for record in best} == {"window.start,rank"}
    assert {record.key: record.json["row"]["page"] for record in best} == {
        f"{hour.format(0)}|0": "a", f"{hour.format(0)}|1": "b", f"{hour.format(1)}|0": "c", f"{hour.format(1)}|1": "b",
    }  # fmt: skip
    sessions = [("v", 2), ("v", 7), ("w", 1), ("z", 1)]
    read(queue, "sessions", lambda found: sorted((r.json["visitor"], r.json["views"]) for r in found) == sessions)
    (alone,) = read(queue, "unclicked", lambda found: len(found) >= 1)
    assert (alone.json, alone.headers["penstock-id"]) == ({"ad": "y", "cost": 1.5}, "y")
    assert alone.headers["penstock-kind"] == "append"


def test_a_late_event_is_kept_with_its_reason(analyze: Analyze, broker: BrokerProcess) -> None:
    """Once, though each hour is in two windows; what is late for one of them only is in the other."""
    queue = broker.address
    # The watermark is at 20:10. Spark drops rows by it in the batches after the one that closed the windows.
    read(queue, "half_hours", lambda found: any(record.json["page"] == "c" for record in found))
    send(queue, "views", [view("late", 60 * 19), {**view("late", 1), "visitor": "headed"}], "visitor")
    send(queue, "views", [view("partly", 60 * 20 - 5)], None)
    late = read(queue, "views.late", lambda found: len(found) >= 2)
    assert sorted(record.json["at"] for record in late) == [view("", 1)["at"], view("", 60 * 19)["at"]]
    headers = next(record.headers for record in late if record.json["visitor"] == "headed")
    assert headers["penstock-id"] == "headed"
    assert headers["penstock-query"] == "half_hours"
    assert headers["penstock-reason"] == "it came after the watermark of query half_hours, 2026-01-01T20:10:00.000Z"
    topic, _, offset = headers["penstock-source"].split("/")
    assert topic == "views"
    assert int(offset) > 0
    send(queue, "views", [view("z", 60 * 21), view("z", 60 * 22)], None)
    halves = read(queue, "half_hours", lambda found: any(record.json["page"] == "partly" for record in found))
    partly = [record.json["began"] for record in halves if record.json["page"] == "partly"]
    assert partly == ["2026-01-01T19:30:00.000000Z"]
    assert not [record for record in halves if record.json["page"] == "late"]
