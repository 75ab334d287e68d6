"""The thread that tells how the queries are."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import pytest

from penstock.analyze import reporter as status
from penstock.analyze.queue_probe import Queue
from penstock.analyze.reporter import Reporter
from penstock.app import App
from penstock.guarantee import Queue as Kind
from penstock.kafka.target import KafkaTarget
from penstock.plan.planner import plan_app

DEADLINE_S = 60.0
NOBODY = "127.0.0.1:1"


def test_the_status_goes_on_after_something_unforeseen(capfd: pytest.CaptureFixture[str]) -> None:
    """What went wrong is told, and the next word is given as if nothing was."""
    told = threading.Semaphore(0)

    def records() -> list[Mapping[str, Any]]:
        told.release()
        raise LookupError("a number that nobody foresaw")

    reporter = Reporter(Queue(KafkaTarget.parse(NOBODY)), plan_app(App("quiet"), Kind()), records)
    reporter.start()
    for _ in range(3):
        assert told.acquire(timeout=60)
        reporter.changed()
    assert not reporter.queue_answers
    reporter.end()
    assert "LookupError: a number that nobody foresaw" in capfd.readouterr().err


class MarkedQueue(Queue):
    """A queue whose topic ends with the marker of a transaction, at offset 3."""

    def __init__(self) -> None:
        super().__init__(KafkaTarget.parse(NOBODY))
        self.end = 4

    def answers(self) -> bool:
        return True

    def ends(self, topics: Sequence[str]) -> dict[tuple[str, int], int]:
        return {("in", 0): self.end, ("out", 0): 2}


class Tails:
    """What a TailReader finds there; `asked` are the ends that it was asked about."""

    def __init__(self, queue: str) -> None:
        self.asked: list[dict[tuple[str, int], int]] = []

    def record_ends(self, ends: dict[tuple[str, int], int], within_s: float) -> dict[tuple[str, int], int]:
        if ends:
            self.asked.append(dict(ends))
        return {place: end - 1 for place, end in ends.items()}

    def close(self) -> None: ...


def test_markers_at_the_end_of_a_quiet_topic_are_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reporter looks at a tail once. What is written meanwhile counts as it is."""
    tails = Tails(NOBODY)
    monkeypatch.setattr(status, "TailReader", lambda queue: tails)
    app = App("marked")
    app.topic("in", schema="id STRING")
    app.sql("q", "SELECT id FROM STREAM(in)", writes="out")
    queue, seen = MarkedQueue(), SimpleQueue[dict[tuple[str, int], int]]()
    reporter = Reporter(queue, plan_app(app, Kind()), lambda: seen.put(reporter.ends) or [])
    reporter.start()

    def until(ends: dict[tuple[str, int], int]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while (found := seen.get(timeout=DEADLINE_S)) != ends:
            assert time.monotonic() < deadline, found

    until({("in", 0): 4, ("out", 0): 2})
    until({("in", 0): 3, ("out", 0): 2})
    queue.end = 9
    until({("in", 0): 9, ("out", 0): 2})
    until({("in", 0): 8, ("out", 0): 2})
    until({("in", 0): 8, ("out", 0): 2})
    reporter.end()
    assert tails.asked == [{("in", 0): 4}, {("in", 0): 9}]
