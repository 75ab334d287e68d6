"""The thread that tells how the queries are."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.analyze.queue import Queue
from penstock.analyze.status import Reporter
from penstock.app import App
from penstock.guarantee import Queue as Kind
from penstock.plan import plan_app

NOBODY = "127.0.0.1:1"


def test_the_status_goes_on_after_something_unforeseen(capfd: pytest.CaptureFixture[str]) -> None:
    """What went wrong is told, and the next word is given as if nothing was."""
    told = threading.Semaphore(0)

    def records() -> list[Mapping[str, Any]]:
        told.release()
        raise LookupError("a number that nobody foresaw")

    reporter = Reporter(Queue(NOBODY), plan_app(App("quiet"), Kind()), records)
    reporter.start()
    for _ in range(3):
        assert told.acquire(timeout=60)
        reporter.changed()
    assert not reporter.queue_answers
    reporter.end()
    assert "LookupError: a number that nobody foresaw" in capfd.readouterr().err
