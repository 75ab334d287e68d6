"""Which mode a query gets, and what keeps it from another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from penstock.analyze.checkpoints import Checkpoint, switch_fault
from penstock.analyze.modes import Choice, Operator, choose, is_stateful, may_be_real_time, obstacle, refusal
from penstock.analyze.settings import query_settings, session_settings, slots_needed
from penstock.app import App, ModeWord, StateWord
from penstock.config.analyze import AnalyzeConfig
from penstock.guarantee import Queue
from penstock.plan.plan import Plan
from penstock.plan.planner import plan_app
from penstock.plan.policies import Mode, StateStore


def shop(**query: object) -> Plan:
    app = App("shop")
    app.topic("a", schema="x INT", partitions=3)

    @app.query(reads="a", writes="b", **query)  # type: ignore[arg-type]  # whatever a test gives
    def some(a: object) -> object:
        return a

    return plan_app(app, Queue())


def test_the_words_of_an_app_are_those_of_the_enums() -> None:
    assert get_args(ModeWord) == tuple(Mode)
    assert get_args(StateWord) == tuple(StateStore)


def test_a_plan_has_the_options_as_enums() -> None:
    query = shop(mode="realtime", state="memory").queries["some"]
    assert (query.mode, query.state) == (Mode.REALTIME, StateStore.MEMORY)
    assert (shop().queries["some"].mode, shop().queries["some"].state) == (Mode.AUTO, StateStore.DISK)


def test_real_time_is_the_default_and_every_obstacle_has_a_reason() -> None:
    assert choose(Mode.AUTO, None, None) == Choice(Mode.REALTIME)
    assert choose(Mode.AUTO, None, "why") == Choice(Mode.MICROBATCH, "why")
    assert choose(Mode.REALTIME, None, "why") == Choice(Mode.REALTIME)
    assert choose(Mode.MICROBATCH, None, None).mode == "microbatch"
    assert choose(Mode.AUTO, 60_000, None) == Choice(Mode.MICROBATCH, "every is given")


def test_obstacles_are_found_in_the_plan() -> None:
    assert obstacle([Operator("Project"), Operator("Aggregate")]) is None
    assert obstacle([Operator("Join", streaming_children=1)]) is None
    assert obstacle([Operator("Join", streaming_children=2)]) == "stream-stream join: not in Real-Time Mode"
    assert "Python function" in str(obstacle([Operator("Project", python=True)]))
    assert "transformWithState" in str(obstacle([Operator("TransformWithStateInPySpark")]))


def test_only_what_remembers_is_stateful() -> None:
    assert not is_stateful([Operator("Project"), Operator("Join", streaming_children=1)])
    assert is_stateful([Operator("Deduplicate")])
    assert is_stateful([Operator("Join", streaming_children=2)])


def test_another_failure_is_no_refusal() -> None:
    assert refusal("Division by zero") is None


def test_a_mode_is_remembered_beside_a_checkpoint_that_was_begun(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path, "q")
    checkpoint.remember(Choice(Mode.MICROBATCH, "why"), {})
    assert checkpoint.remembered() is None
    (checkpoint.path / "offsets").mkdir()
    (checkpoint.path / "offsets" / "0").write_text("v1")
    assert Checkpoint(tmp_path, "q").remembered() == Choice(Mode.MICROBATCH, "why")
    checkpoint.sync()
    checkpoint.clear()
    assert checkpoint.remembered() is None


@pytest.mark.parametrize("mode", ["auto", "batch", None])
def test_a_mode_that_no_query_runs_in_is_not_remembered(tmp_path: Path, mode: str | None) -> None:
    """A damaged mode file counts as none."""
    checkpoint = Checkpoint(tmp_path, "q")
    (checkpoint.path / "offsets").mkdir(parents=True)
    (checkpoint.path / "offsets" / "0").write_text("v1")
    (tmp_path / "q.json").write_text(json.dumps({"mode": mode, "reason": None}))
    assert checkpoint.remembered() is None


def test_the_mode_file_has_the_word_of_the_app(tmp_path: Path) -> None:
    """Versions before the enum read it."""
    Checkpoint(tmp_path, "q").remember(Choice(Mode.REALTIME), {"t": "1"})
    kept = json.loads((tmp_path / "q.json").read_text())
    assert kept.items() >= {"mode": "realtime", "reason": None, "topics": {"t": "1"}}.items()


def test_another_mode_on_the_same_checkpoint_is_refused_with_the_way_out() -> None:
    said = switch_fault(Mode.REALTIME, Choice(Mode.MICROBATCH))
    assert said is not None
    assert said == (
        "its checkpoint was begun in micro-batches, and Spark cannot go on from it in real time: "
        "say mode='microbatch', or let it start from another place"
    )
    assert switch_fault(Mode.AUTO, Choice(Mode.MICROBATCH)) is None
    assert switch_fault(Mode.MICROBATCH, Choice(Mode.MICROBATCH)) is None
    assert switch_fault(Mode.REALTIME, None) is None


def test_a_setting_of_the_query_wins_over_the_file_and_the_file_over_ours(tmp_path: Path) -> None:
    provider = "spark.sql.streaming.stateStore.providerClass"
    plan = shop(spark={"spark.x": "query"})
    config = AnalyzeConfig(spark={"spark.ui.port": "4040", "spark.x": "file", provider: "mine"})
    session = session_settings(config, "shop", tmp_path, 4)
    assert (session["spark.ui.port"].value, session["spark.ui.port"].origin) == ("4040", "[analyze.spark]")
    assert session["spark.master"].origin == "penstock"
    own = query_settings(plan.queries["some"], config)
    assert (own["spark.x"].value, own["spark.x"].origin) == ("query", "query some")
    assert own[provider].value == "mine"


def test_whether_a_query_may_be_real_time_is_told_before_spark_is_asked() -> None:
    """By what was asked for and promised, or by how it was begun."""
    begun = Choice(Mode.MICROBATCH, "stream-stream join: not in Real-Time Mode")
    assert may_be_real_time(Mode.AUTO, None, None, None)
    assert may_be_real_time(Mode.REALTIME, 10_000, None, None)
    assert may_be_real_time(Mode.AUTO, None, Choice(Mode.REALTIME), None)
    assert not may_be_real_time(Mode.AUTO, None, begun, None)
    assert not may_be_real_time(Mode.AUTO, None, None, "exactly-once")
    assert not may_be_real_time(Mode.AUTO, 10_000, None, None)
    assert not may_be_real_time(Mode.MICROBATCH, None, None, None)


def test_state_in_memory_keeps_no_rocksdb() -> None:
    kept = query_settings(shop(state="memory").queries["some"], AnalyzeConfig())
    assert not any("RocksDB" in setting.value for setting in kept.values())


def test_there_are_slots_for_all_queries_at_once() -> None:
    plan = shop()
    assert slots_needed(plan, AnalyzeConfig(shuffle_partitions=2), 2, {}) == 3 + 4 + 3
    assert slots_needed(plan, AnalyzeConfig(shuffle_partitions=2), 2, {"a": 9}) == 9 + 4 + 3


def test_positions_are_those_of_the_last_committed_batch(tmp_path: Path) -> None:
    """A batch that was planned and not committed does not count."""
    checkpoint = Checkpoint(tmp_path, "q")
    assert checkpoint.positions() == {}
    for folder in ("offsets", "commits"):
        (checkpoint.path / folder).mkdir(parents=True)
    for batch, offset in ((9, 10), (10, 20), (11, 30)):
        (checkpoint.path / "offsets" / str(batch)).write_text(
            f'v1\n{{"conf": {{}}}}\n{{"a":{{"0":{offset},"1":3}}}}\n-'
        )
    for batch in (9, 10):
        (checkpoint.path / "commits" / str(batch)).write_text("v1\n{}")
    (checkpoint.path / "commits" / ".11.crc").write_text("")
    assert checkpoint.positions() == {"a": {0: 20, 1: 3}}
