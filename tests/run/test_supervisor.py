"""`penstock run`: whatever is killed comes back, and nothing that was accepted is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from penstock import App
from penstock.drills.app_process import AppProcess, descendants
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import read_topic
from penstock.guarantee import Queue
from penstock.plan.planner import plan_app
from penstock.supervisor.supervisor import have_run

DEADLINE_S = 60.0
FAULTY = """
from penstock import App, sources

faulty = App("faulty")
clicks = faulty.topic("clicks", schema="id STRING NOT NULL", key="id")
faulty.ingest(sources.Http(), into=clicks)

@faulty.query(reads=clicks, writes="kept")
def forgets(clicks): clicks.where("id > 'a'")
"""
GUARDED = """
import penstock

if __name__ == "__main__":
    penstock.run(plain, port=0, data="data", listen="127.0.0.1:0")
"""


def post(app: AppProcess, id: str) -> bool:
    """Send a click; True if it was accepted."""
    connection = HTTPConnection("127.0.0.1", app.port, timeout=40)
    try:
        connection.request("POST", "/ingest/clicks", json.dumps({"id": id}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == 202
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def wait_for(fact: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not fact():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def stored(app: AppProcess) -> set[str]:
    return {json.loads(record.value or b"")["id"] for record in read_topic(app.queue, "clicks")}


def penstock(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "penstock", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("part", ["broker", "edge"])
def test_a_part_that_is_killed_comes_back_alone(plain: AppProcess, part: str) -> None:
    """The others go on, and what was accepted before and after is there."""
    before = plain.parts()
    assert post(plain, "before")
    assert plain.kill_part(part)
    wait_for(lambda: plain.parts().get(part) not in (None, before[part]), f"{part} starts again")
    wait_for(lambda: post(plain, "after"), "events are accepted again")
    after = plain.parts()
    assert {name: pid for name, pid in after.items() if name != part} == {
        name: pid for name, pid in before.items() if name != part
    }
    assert stored(plain) == {"before", "after"}
    assert f"{part:<8} was ended by SIGKILL; starts again" in plain.said


def test_when_the_supervisor_is_killed_nobody_lives_on(plain: AppProcess) -> None:
    """No port stays taken: the next run starts at once on the same ones, with what was accepted."""
    assert post(plain, "before")
    plain.kill_supervisor()
    plain.start()
    assert post(plain, "after")
    assert stored(plain) == {"before", "after"}


def test_everything_at_once(plain: AppProcess) -> None:
    """As when the machine's memory runs out."""
    assert post(plain, "before")
    plain.kill()
    plain.start()
    assert stored(plain) == {"before"}


def test_it_stops_cleanly_when_asked(plain: AppProcess) -> None:
    """With status 0, and every process gone."""
    family = descendants(plain.pid)
    assert len(family) >= 2
    assert plain.stop() == 0
    assert plain.said.endswith("stopped\n")


def test_a_folder_has_one_run_at_a_time(plain: AppProcess, tmp_path: Path) -> None:
    """The second is refused in a sentence."""
    answer = penstock("run", "plain.py", "--data", str(plain.data), "--port", "0", folder=tmp_path)
    assert answer.returncode == 2
    assert "another penstock run uses" in answer.stderr


def test_what_is_wrong_is_told_at_once_and_nothing_starts(tmp_path: Path) -> None:
    """All of it, with status 2."""
    (tmp_path / "bad.py").write_text(
        "from penstock import App\nbad = App('bad')\nbad.topic('t', schema='id STRNG')\nbad.deliver('u')\n"
    )
    answer = penstock("run", "bad.py", "--data", "data", "--port", "0", folder=tmp_path)
    assert answer.returncode == 2
    assert "column id has no type that JSON can carry" in answer.stderr
    assert "unknown topic u" in answer.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "declares no App"),
        ("import nowhere", "line 1: ModuleNotFoundError"),
        ("from penstock import App\na, b = App('a'), App('b')", "name one of app.py:a, app.py:b"),
    ],
)
def test_an_app_that_cannot_be_found_is_told_in_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    """Never a traceback."""
    (tmp_path / "app.py").write_text(text)
    answer = penstock("run", "app.py", "--dry-run", folder=tmp_path)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_queue_that_runs_already_is_used(tmp_path: Path) -> None:
    """Then no broker is started; a topic that does not fit is refused."""
    from tests.run.conftest import PLAIN

    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "queue").mkdir()
    with BrokerProcess(tmp_path / "queue", tmp_path) as broker:
        app = AppProcess(str(tmp_path / "plain.py"), tmp_path, flags=["--queue", broker.address])
        app.queue = broker.address
        with app:
            assert post(app, "a")
            assert sorted(app.parts()) == ["edge"]
            assert stored(app) == {"a"}
            app.stop()
        (tmp_path / "plain.py").write_text(PLAIN.replace("partitions=2", "partitions=3"))
        words = ("run", "plain.py", "--data", "other", "--port", "0", "--queue", broker.address)
        answer = penstock(*words, folder=tmp_path)
    assert answer.returncode == 2
    assert "topic clicks has 2 partitions in the queue and 3 in the app" in answer.stderr


def test_an_app_can_run_itself(tmp_path: Path) -> None:
    """penstock.run(app) under if __name__ == '__main__'; without that line it says so."""
    from tests.run.conftest import PLAIN

    script = tmp_path / "itself.py"
    script.write_text(PLAIN + "\nimport penstock\npenstock.run(plain, port=0, data='data')\n")
    answer = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 2
    assert "put it under if __name__ == '__main__'" in answer.stdout + answer.stderr
    script.write_text(PLAIN + GUARDED)
    running = subprocess.Popen([sys.executable, str(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert any(line.startswith("ready http") for line in running.stdout)
        running.send_signal(signal.SIGINT)
        assert running.stdout.read().endswith("stopped\n")
        assert running.wait(DEADLINE_S) == 0
    finally:
        running.kill()
        running.communicate()


def test_an_app_whose_query_cannot_run_accepts_nothing(tmp_path: Path) -> None:
    """Spark says so seconds after the start: until then senders hear 503, and the run ends with the reason."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    app = AppProcess(str(tmp_path / "faulty.py"), tmp_path)
    app.start(ready=False)
    accepted = []
    try:
        deadline = time.monotonic() + 3 * DEADLINE_S
        while app.is_running:
            assert time.monotonic() < deadline
            accepted.append(post(app, f"click-{len(accepted)}"))
            time.sleep(0.02)
    finally:
        app.kill()
    assert not any(accepted)
    assert "query forgets: must return a DataFrame, not NoneType" in app.said
    assert "checked: " not in app.said


def test_doors_wait_for_spark_only_where_a_query_never_ran(tmp_path: Path) -> None:
    """After a crash or an update the doors are open as soon as the queue is."""
    app = App("shop")
    app.topic("clicks", schema="id STRING", identity="id")
    app.sql("one", "SELECT id, _event FROM STREAM(clicks)", writes="a")
    app.sql("two", "SELECT id, _event FROM STREAM(clicks)", writes="b")
    plan = plan_app(app, Queue())
    begun = []
    for name in ("one", "two"):
        offsets = tmp_path / "analyze" / "checkpoints" / name / "offsets"
        offsets.mkdir(parents=True)
        (offsets / "0").touch()
        begun.append(have_run(plan, tmp_path))
    assert begun == [False, True]
