"""How a running query is looked after: rarely asked, and at once when it has committed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.failures import AwayError, Failure
from penstock.analyze.lifecycle import Lifecycle
from penstock.analyze.modes import Choice
from penstock.analyze.result_latency import Newest
from penstock.analyze.runner import AnalyzeStatus, Job, Runner
from penstock.jvm.worker_output import WorkerOutput
from penstock.plan.policies import Mode

LOOKS_IN_A_SECOND = 10


class Query:
    """What Spark says of a query, and how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.lastProgress: dict[str, Any] | None = None
        self.is_up = True

    @property
    def isActive(self) -> bool:
        self.asked += 1
        return self.is_up

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return [self.lastProgress] if self.lastProgress else []

    def exception(self) -> Exception | None:
        return None

    def stop(self) -> None:
        self.is_up = False


class Nowhere:
    """A queue without topics."""

    def __init__(self, **ids: str) -> None:
        self.ids = ids

    def topic_ids(self, _: object) -> dict[str, str]:
        return self.ids

    def ranges(self, _: object) -> dict[tuple[str, int], tuple[int, int]]:
        return {}


@pytest.fixture
def query() -> Query:
    return Query()


@pytest.fixture
def runner(query: Query, tmp_path: Path) -> Runner:
    job = Job("decide", ("purchases",), "decisions", lambda *_: query)  # type: ignore[arg-type, return-value]
    made = runner_of(job, tmp_path, Lifecycle(3, 60_000), Nowhere())
    made.start(0)
    return made


def runner_of(job: Job, folder: Path, life: Lifecycle, queue: object) -> Runner:
    output = WorkerOutput(folder / "spark.out")
    return Runner(job, Choice(Mode.REALTIME), Checkpoint(folder, "decide"), life, queue, output)  # type: ignore[arg-type]


def commit(tmp_path: Path, number: int) -> dict[str, Any]:
    """A batch ends: its file, and what Spark will say of it a moment later."""
    commits = tmp_path / "decide" / "commits"
    commits.mkdir(exist_ok=True)
    (commits / str(number)).write_text("v1\n{}")
    os.utime(commits, ns=(number, number + 1))  # some clocks of file systems stand still for milliseconds
    return {"runId": "a run", "batchId": number, "numInputRows": 7}


def test_a_query_that_goes_on_is_asked_once_a_second(runner: Runner, query: Query) -> None:
    """Each question costs the events that are under way; in the first seconds it may end at any moment."""
    for _ in range(5 * LOOKS_IN_A_SECOND):
        runner.look(0)
    assert query.asked == 50

    for _ in range(5 * LOOKS_IN_A_SECOND):
        runner.look(0)
    assert query.asked == 55


def test_a_commit_is_known_at_once_also_if_spark_tells_of_it_a_moment_later(
    runner: Runner, query: Query, tmp_path: Path
) -> None:
    for number in range(3):
        told = commit(tmp_path, number)
        runner.look(0)
        query.lastProgress = told
        runner.look(0)
        assert runner.numbers.rows_in == 7 * (number + 1)


def test_the_end_of_a_query_is_noticed_within_a_second(runner: Runner, query: Query) -> None:
    for _ in range(6 * LOOKS_IN_A_SECOND):
        runner.look(0)
    query.is_up = False

    for _ in range(LOOKS_IN_A_SECOND):
        runner.look(0)

    assert runner.life.state == "restarting"


def test_what_spark_refuses_at_once_is_noticed_at_once(runner: Runner, query: Query) -> None:
    query.is_up = False

    runner.look(0)

    assert runner.life.state == "restarting"


class Frozen:
    """A queue whose leader does not answer at first."""

    def __init__(self) -> None:
        self.is_frozen = True

    def topic_ids(self, _: object) -> dict[str, str]:
        return {}

    def ranges(self, _: object) -> dict[tuple[str, int], tuple[int, int]]:
        if self.is_frozen:
            raise AwayError("the leader of purchases/0 does not answer")
        return {("purchases", 0): (0, 9)}


def test_a_query_waits_for_a_leader_that_does_not_answer_and_then_starts(query: Query, tmp_path: Path) -> None:
    """It is not parked: an unknown end of the topic says nothing about the checkpoint."""
    job = Job("decide", ("purchases",), "decisions", lambda *_: query)  # type: ignore[arg-type, return-value]
    queue = Frozen()
    runner = runner_of(job, tmp_path, Lifecycle(1, 600_000), queue)
    now_ms = 0
    for _ in range(10):
        runner.start(now_ms)
        assert (runner.life.state, runner.life.reason) == ("waiting", "the leader of purchases/0 does not answer")
        now_ms += 30_000
        assert runner.life.wants_start(now_ms)
    queue.is_frozen = False
    runner.start(now_ms)
    assert runner.life.state == "running"


def test_a_query_whose_topic_was_made_again_is_parked_at_its_start(query: Query, tmp_path: Path) -> None:
    """The offsets of its checkpoint mean other records there."""
    job = Job("decide", ("purchases",), "decisions", lambda *_: query)  # type: ignore[arg-type, return-value]
    first = runner_of(job, tmp_path, Lifecycle(3, 60_000), Nowhere(purchases="id-1"))
    first.start(0)
    (tmp_path / "decide" / "offsets").mkdir()
    (tmp_path / "decide" / "offsets" / "0").touch()
    again = runner_of(job, tmp_path, Lifecycle(3, 60_000), Nowhere(purchases="id-1"))
    again.start(0)
    assert again.life.state == "running"

    later = runner_of(job, tmp_path, Lifecycle(3, 60_000), Nowhere(purchases="id-2"))
    later.start(0)
    assert later.life.state == "parked"
    assert "the topic purchases was deleted and made again" in str(later.life.reason)


ENDS = {("purchases", 0): 10}


def stalled_ms(runner: Runner, now_ms: int, ends: dict[tuple[str, int], int] = ENDS) -> int:
    told: int = runner.status(ends, Newest(), now_ms, AnalyzeStatus("a", None, 0, None)).stalled_ms
    return told


def test_a_query_that_has_input_and_does_not_move_says_for_how_long(
    runner: Runner, query: Query, tmp_path: Path
) -> None:
    """What it never committed is input, too; what it has done is not, nor is an empty topic."""
    assert [stalled_ms(runner, now_ms) for now_ms in (1_000, 61_000)] == [0, 60_000]
    query.lastProgress = commit(tmp_path, 0) | {"sources": [{"endOffset": {"purchases": {"0": 10}}}]}
    runner.look(0)
    assert [stalled_ms(runner, now_ms) for now_ms in (62_000, 200_000)] == [0, 0]
    more = {("purchases", 0): 11}
    assert [stalled_ms(runner, now_ms, more) for now_ms in (201_000, 202_000)] == [1_000, 2_000]
    assert stalled_ms(runner, 300_000, {}) == 0, "the queue does not say what there is"


def test_a_query_that_waits_does_not_move_and_one_that_is_parked_says_why(runner: Runner) -> None:
    runner.life.on_ended(Failure("away", "it needs 5 task slots"), 0)
    assert [stalled_ms(runner, now_ms, {}) for now_ms in (1_000, 61_000)] == [0, 60_000]
    runner.park("it failed")
    assert stalled_ms(runner, 200_000) == 0


def renew(runner: Runner) -> None:
    deadline = time.monotonic() + 60
    while not runner.renew():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_query_whose_table_has_other_rows_is_started_again_without_a_failure(runner: Runner, query: Query) -> None:
    renew(runner)
    assert not query.is_up
    assert (runner.life.state, runner.life.wants_start(0), runner.life.restarts) == ("starting", True, 0)
    runner.start(0)
    assert (runner.life.state, runner.life.restarts) == ("running", 0)


def test_a_parked_or_paused_query_stays_so_when_its_table_changes(runner: Runner) -> None:
    runner.park("it failed")
    renew(runner)
    assert (runner.life.state, runner.life.wants_start(10**9)) == ("parked", False)
    runner.life.pause()
    renew(runner)
    assert runner.life.state == "paused"


def test_the_reason_of_a_running_query_is_what_is_wrong_with_its_table(runner: Runner) -> None:
    runner.remark = "table cards keeps its old rows: there is no file cards.csv"
    status = runner.status({}, Newest(), 0, AnalyzeStatus("a", None, 0, None))
    assert (status.state, status.reason) == ("running", runner.remark)
