"""One run of an app at a time writes to a queue; the next one goes on when the first is gone, or takes over."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.drills.app_process import AppProcess
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import read_topic
from tests.run.conftest import PLAIN
from tests.run.test_supervisor import post, wait_for

QUERY = """
@plain.query(reads=clicks, writes="kept")
def keep(clicks): return clicks.select("id", "_event")
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    (tmp_path / "queue").mkdir()
    with BrokerProcess(tmp_path / "queue", tmp_path) as running:
        yield running


def run_of(app: str, folder: Path, broker: BrokerProcess, *flags: str) -> AppProcess:
    """A run of an app in a folder of its own, on a queue that it shares."""
    folder.mkdir(exist_ok=True)
    (folder / "plain.py").write_text(app)
    process = AppProcess(str(folder / "plain.py"), folder, flags=["--queue", broker.address, *flags])
    process.queue = broker.address
    return process


def test_the_second_run_of_an_app_is_refused_and_the_first_goes_on(tmp_path: Path, broker: BrokerProcess) -> None:
    with run_of(PLAIN, tmp_path / "first", broker) as first:
        second = tmp_path / "second"
        second.mkdir()
        words = ["run", str(tmp_path / "first" / "plain.py"), "--data", str(second), "--port", "0"]
        answer = subprocess.run(
            [sys.executable, "-m", "penstock", *words, "--queue", broker.address],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert answer.returncode == 2
        assert "another `penstock run` works on the app plain, on " in answer.stderr
        assert f"data in {first.data}" in answer.stderr
        assert post(first, "a")
        assert first.stop() == 0


def test_a_run_that_takes_over_ends_the_first(tmp_path: Path, broker: BrokerProcess) -> None:
    with (
        run_of(PLAIN, tmp_path / "first", broker) as first,
        run_of(PLAIN, tmp_path / "second", broker, "--take-over") as second,
    ):
        wait_for(lambda: not first.is_running, "the first run ends")
        assert "has taken over the app plain: this one stops" in first.said
        assert post(second, "a")
        assert second.stop() == 0


@pytest.mark.parametrize("place", ["first", "second"])
def test_a_run_goes_on_after_another_was_killed(tmp_path: Path, broker: BrokerProcess, place: str) -> None:
    """On the same data at once, on other data when the lease is free."""
    with run_of(PLAIN, tmp_path / "first", broker) as first:
        assert post(first, "a")
        first.kill()
    with run_of(PLAIN, tmp_path / place, broker) as second:
        assert post(second, "b")
        assert second.stop() == 0


def test_taking_over_the_run_that_serves_the_queue_is_refused(plain: AppProcess, tmp_path: Path) -> None:
    """The queue would end with it."""
    words = ["run", str(tmp_path / "plain.py"), "--data", str(tmp_path / "other"), "--port", "0", "--take-over"]
    answer = subprocess.run(
        [sys.executable, "-m", "penstock", *words, "--queue", plain.queue],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert answer.returncode == 2
    assert "--take-over ends the run that also serves the queue" in answer.stderr


def test_queries_stop_without_the_lease_and_go_on_with_it(tmp_path: Path, broker: BrokerProcess) -> None:
    """A broker is frozen for longer than the lease may go without renewal."""
    with run_of(PLAIN + QUERY, tmp_path / "first", broker) as app:
        assert post(app, "before")
        wait_for(lambda: len(list(read_topic(broker.address, "kept"))) == 1, "the event is kept")
        analyze = app.parts()["analyze"]
        broker.pause()
        wait_for(lambda: app.parts().get("analyze") != analyze, "analyze stops")
        log = (app.data / "logs" / "analyze.log").read_text()
        assert "the lease of the app was not renewed for 6 s: queries stop" in log
        broker.wake()
        wait_for(lambda: post(app, "after"), "events are accepted again")
        wait_for(lambda: len(list(read_topic(broker.address, "kept"))) >= 2, "the next event is kept")
        assert app.stop() == 0
