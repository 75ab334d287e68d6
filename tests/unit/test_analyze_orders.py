"""Orders are obeyed once and in their order; a crash at any point leaves as before, or as after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.exactly_once.batch_tokens import Token, TokenError, is_done, reset_token
from penstock.analyze.jobs import starting_offsets
from penstock.analyze.kept import NEW, Kept, obey, pass_over, pending
from penstock.analyze.lifecycle import Lifecycle
from penstock.analyze.modes import Choice
from penstock.analyze.order_logs import FileLog, first_pending
from penstock.analyze.runner import Job, Runner
from penstock.events.query_order import BEGINNING, LATEST, Action, QueryOrder, decode_order, encode_order
from penstock.events.query_status import QueryState
from penstock.jvm.worker_output import WorkerOutput
from penstock.plan.policies import Mode


def order(id: str, action: Action = Action.RESTART, **more: Any) -> QueryOrder:
    return QueryOrder(id=id, query="q", action=action, **more)


FROM_LATEST = order("start", Action.START, begin=LATEST)
STARTED = Kept(mode="microbatch", topics={"t": "1"}, writes="out")


def test_an_order_is_read_as_it_was_written() -> None:
    assert decode_order(encode_order(FROM_LATEST)) == FROM_LATEST
    assert decode_order(b"{}") is None
    assert decode_order(None) is None


def test_what_each_order_leaves() -> None:
    paused = obey(STARTED, order("1", Action.PAUSE), "file")
    assert (paused.is_paused, paused.obeyed, paused.mode) == (True, {"file": "1"}, "microbatch")
    for action in (Action.RESUME, Action.RESTART):
        assert not obey(paused, order("2", action), "file").is_paused
    assert obey(paused, order("2", Action.DROP), "file").is_paused, "a query that is declared is not dropped"
    begun = obey(paused, FROM_LATEST, "topic")
    assert begun == Kept(writes="out", is_void=True, begin=LATEST, obeyed={"file": "1", "topic": "start"})
    keeps = obey(paused, order("3", Action.START, keep_state=True), "file")
    assert (keeps.mode, keeps.fingerprint, keeps.is_paused, keeps.is_void) == ("microbatch", None, False, False)


def test_orders_are_pending_behind_the_last_one_obeyed() -> None:
    orders = [order("1"), order("2"), order("3")]
    assert pending(orders, "2") == orders[2:]
    assert pending(orders, "3") == []
    assert pending(orders, None) == pending(orders, "of another log") == orders


def test_a_query_that_is_new_here_passes_over_older_orders_but_a_pause() -> None:
    assert pass_over(NEW, [FROM_LATEST], "topic") == Kept(obeyed={"topic": "start"})
    assert pass_over(NEW, [order("1", Action.PAUSE)], "topic").is_paused
    assert pass_over(NEW, [], "topic") == NEW


def test_a_file_of_orders_survives_a_line_that_was_cut_off(tmp_path: Path) -> None:
    log = FileLog(tmp_path)
    assert log.orders() == []
    log.append(order("1"))
    with log.path.open("ab") as file:
        file.write(encode_order(order("lost"))[:-5])
    log.append(order("2"))
    assert [one.id for one in log.orders()] == ["1", "2"]
    assert first_pending((log,), "q", Kept(obeyed={"file": "1"})) == (order("2"), "file")
    assert first_pending((log,), "another", NEW) is None


def test_spark_is_told_where_to_start() -> None:
    assert starting_offsets(NEW, ["t"]) == {}
    assert starting_offsets(Kept(begin=BEGINNING), ["t", "u"]) == {"t": "earliest", "u": "earliest"}
    assert starting_offsets(Kept(begin="7", starts={"t": {"0": 5}}), ["t"]) == {"t": '{"t": {"0": 5}}'}


def test_batches_begin_again_behind_a_reset_and_nothing_else_goes_on_there() -> None:
    assert not is_done(Token(0, "new", "x"), reset_token("why"))
    with pytest.raises(TokenError):
        is_done(Token(7, "old", "x"), reset_token("why"))


# Crashes.


class Crash(BaseException):
    """The process is killed here."""


class Query:
    """A query of Spark's."""

    def __init__(self) -> None:
        self.isActive = True
        self.lastProgress = None

    def stop(self) -> None:
        self.isActive = False


class Queue:
    """A queue with one record in a topic."""

    def topic_ids(self, _: object) -> dict[str, str]:
        return {"t": "1"}

    def ranges(self, _: object) -> dict[tuple[str, int], tuple[int, int]]:
        return {("t", 0): (0, 1)}

    def starts(self, topics: Sequence[str], begin: str) -> dict[str, dict[str, int]]:
        return {"t": {"0": 1}}


class World:
    """One query over several lives of its process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun: list[Kept] = []
        self.fenced: list[Mapping[str, str]] = []

    def runner(self) -> Runner:
        checkpoint = Checkpoint(self.folder, "q")

        def begin(choice: Choice, path: Path) -> Any:
            self.begun.append(Checkpoint(path.parent, path.name).kept())
            (path / "offsets").mkdir(exist_ok=True)
            (path / "offsets" / "0").write_text("v1")
            return Query()

        job = Job("q", ("t",), "out", begin, fence=self.fenced.append)
        choice = checkpoint.remembered() or Choice(Mode.MICROBATCH, "fresh")
        life = Lifecycle(3, 60_000)
        fresh = Choice(Mode.MICROBATCH, "fresh")
        output = WorkerOutput(self.folder / "spark.out")
        return Runner(job, choice, checkpoint, life, Queue(), output, fresh=fresh)  # type: ignore[arg-type]


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    runner = made.runner()
    runner.start(0)
    assert runner.life.state is QueryState.RUNNING
    (tmp_path / "q" / "of the life before").touch()
    return made


def obeyed(runner: Runner, given: QueryOrder) -> None:
    while not runner.obey(given, "file"):
        continue


def crash(*_: object, **__: object) -> None:
    raise Crash


def test_a_query_is_paused_and_resumed(world: World) -> None:
    runner = world.runner()
    runner.start(0)
    obeyed(runner, order("1", Action.PAUSE))
    assert (runner.life.state, runner.life.wants_start(10**9)) == (QueryState.PAUSED, False)
    runner.leave()
    assert runner.life.state is QueryState.PAUSED, "what it says last"
    obeyed(runner, order("2", Action.RESUME))
    assert runner.life.wants_start(0)
    assert (world.folder / "q" / "of the life before").exists()


@pytest.mark.parametrize("at", ["os.replace", "penstock.analyze.checkpoints.encode_kept"])
def test_a_crash_before_an_order_is_kept_leaves_as_before(
    world: World, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    runner = world.runner()
    before = runner.kept
    with monkeypatch.context() as patch:
        patch.setattr(at, crash)
        with pytest.raises(Crash):
            obeyed(runner, FROM_LATEST)
    after = world.runner()
    assert after.kept == before
    assert (world.folder / "q" / "of the life before").exists()


def _in_fence(world: World, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(world, "fenced", [])
    patch.setattr(World, "runner", _with_fence(World.runner))


def _with_fence(made: Callable[[World], Runner]) -> Callable[[World], Runner]:
    def runner(world: World) -> Runner:
        found = made(world)
        object.__setattr__(found.job, "fence", crash)
        return found

    return runner


@pytest.mark.parametrize(
    "at",
    [
        lambda _, patch: None,
        _in_fence,
        lambda _, patch: patch.setattr(Queue, "starts", crash),
        lambda _, patch: patch.setattr("penstock.analyze.checkpoints.shutil.rmtree", crash),
        lambda _, patch: patch.setattr("penstock.analyze.checkpoints.shutil.rmtree", _half),
        lambda _, patch: patch.setattr(Checkpoint, "keep", crash),
        lambda _, patch: patch.setattr(Checkpoint, "remember", crash),
    ],
    ids=["nowhere", "fence", "offsets", "before rmtree", "in rmtree", "before it is kept", "before the start"],
)
def test_a_crash_behind_an_order_leaves_as_after(
    world: World, monkeypatch: pytest.MonkeyPatch, at: Callable[[World, pytest.MonkeyPatch], None]
) -> None:
    """The checkpoint is new, begins where the order says, and what wrote on the one before is fenced."""
    obeyed(world.runner(), FROM_LATEST)
    with monkeypatch.context() as patch:
        at(world, patch)
        try:
            world.runner().start(0)
        except Crash:
            world.begun.clear()
    again = world.runner()
    again.start(0)
    assert again.life.state is QueryState.RUNNING
    assert world.fenced
    kept = world.begun[-1]
    assert (kept.is_void, kept.begin, kept.starts, kept.obeyed) == (False, LATEST, {"t": {"0": 1}}, {"file": "start"})
    assert not (world.folder / "q" / "of the life before").exists()


def _half(path: Path, **_: object) -> None:
    (path / "of the life before").unlink()
    raise Crash
