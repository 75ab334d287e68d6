"""`penstock tap` and `penstock queries` as a shell runs them, on a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.drills.broker_process import BrokerProcess

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("broker")
    with BrokerProcess(folder / "data", folder) as node:
        yield node


class Shell:
    """Commands that talk to one broker."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._environment = os.environ | {"PENSTOCK_ADDRESS": broker.address}
        self._command = str(Path(sys.executable).with_name("penstock"))

    def run(self, *args: str, given: str = "", status: int = 0) -> str:
        done = subprocess.run(
            [self._command, *args], input=given, capture_output=True, text=True, timeout=DEADLINE_S,
            env=self._environment, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    def start(self, *args: str) -> subprocess.Popen[str]:
        # Where the tests themselves run in the background of a shell, Ctrl-C would be ignored by inheritance.
        return subprocess.Popen(
            [self._command, *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


@pytest.fixture
def shell(broker: BrokerProcess) -> Shell:
    return Shell(broker)


def first_words(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def rest_of(process: subprocess.Popen[str], stop: int | None = None) -> tuple[str, str]:
    if stop is not None:
        process.send_signal(stop)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, err
    return out, err


def test_a_pattern_shows_its_topics_and_those_made_later(shell: Shell) -> None:
    """Watching begins at the end; a new topic that matches is shown from its first record; others are not."""
    shell.run("topics", "create", "pat-a")
    shell.run("topics", "create", "other")
    shell.run("produce", "pat-a", given="before\n")
    tap = shell.start("tap", "pat-*", "--max", "2")
    assert "watching 1 topic: pat-a" in first_words(tap)
    shell.run("produce", "other", given="elsewhere\n")
    shell.run("produce", "pat-a", given='{"n": 1}\n')
    shell.run("produce", "pat-b", given='{"n": 2}\n')
    out, err = rest_of(tap)
    lines = out.splitlines()
    assert [line.split(None, 1)[1].split() for line in lines] == [
        ["pat-a/0", '{"n":', "1}"],
        ["pat-b/0", '{"n":', "2}"],
    ]
    assert "pat-b is new" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_cleanly(shell: Shell, number: int) -> None:
    """Status 0, and no traceback."""
    tap = shell.start("tap", "nothing-like-this*")
    assert "no topic matches" in first_words(tap)
    out, err = rest_of(tap, number)
    assert out == err == ""


def test_json_and_the_last_records(shell: Shell) -> None:
    """--json prints whole records; --from -2 the last two."""
    shell.run("produce", "json", given="1\n2\n3\n")
    out, _ = rest_of(shell.start("tap", "json", "--from", "-2", "--json", "--max", "2"))
    found: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert [(each["topic"], each["offset"], each["value"]) for each in found] == [("json", 1, "2"), ("json", 2, "3")]


def test_a_topic_that_is_not_there_is_a_sentence(shell: Shell) -> None:
    assert "there is no topic nowhere" in shell.run("tap", "nowhere", status=1)


def test_tap_survives_the_broker(tmp_path: Path) -> None:
    """Killed and started again: what is written afterwards is shown, what was shown is not shown again."""
    with BrokerProcess(tmp_path / "data", tmp_path) as node:
        shell = Shell(node)
        shell.run("produce", "t", given="1\n")
        tap = shell.start("tap", "t", "--from", "beginning", "--max", "2", "--json")
        assert tap.stdout is not None
        assert json.loads(tap.stdout.readline())["value"] == "1"
        node.kill()
        node.start()
        shell.run("produce", "t", given="2\n")
        out, _ = rest_of(tap)
        assert [json.loads(line)["offset"] for line in out.splitlines()] == [1]


def test_queries_shows_the_latest_report_of_each(tmp_path: Path) -> None:
    """Nobody, then two queries; what is no report is passed over."""
    with BrokerProcess(tmp_path / "data", tmp_path) as node:
        shell = Shell(node)
        assert "no query has reported" in shell.run("queries")
        assert json.loads(shell.run("queries", "--json")) == []
        now_ms = time.time_ns() // 1_000_000
        reports = [
            {"app": "shop", "query": "decide", "state": "starting", "mode": "realtime", "at_ms": now_ms},
            {"app": "shop", "query": "decide", "state": "running", "mode": "realtime", "at_ms": now_ms, "lag": 7},
            {"app": "shop", "query": "old", "state": "running", "mode": "microbatch", "at_ms": now_ms - 60_000},
        ]
        lines = [*map(json.dumps, reports), "no json", "[]"]
        shell.run("produce", "penstock.queries", given="\n".join(lines) + "\n")
        decide, old = json.loads(shell.run("queries", "--json"))
        assert (decide["state"], decide["lag"], decide["silent"]) == ("running", 7, False)
        assert old["silent"] is True
        table = shell.run("queries")
        assert "decide  running" in table
        assert "silent since" in table
        assert "realtime" in table


def test_queries_can_be_watched_until_ctrl_c(tmp_path: Path) -> None:
    """Each second the table again, with what was reported meanwhile."""
    with BrokerProcess(tmp_path / "data", tmp_path) as node:
        shell = Shell(node)
        watch = shell.start("queries", "--watch")
        assert watch.stdout is not None
        assert "no query has reported" in watch.stdout.readline()
        report = {
            "app": "shop",
            "query": "q",
            "state": "running",
            "mode": "realtime",
            "at_ms": time.time_ns() // 1_000_000,
        }
        shell.run("produce", "penstock.queries", given=json.dumps(report) + "\n")
        while "running" not in (line := watch.stdout.readline()):
            assert line
        rest_of(watch, signal.SIGINT)
