"""`penstock queries pause|resume|restart|start|drop` without an app that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.kept import Kept
from penstock.analyze.order_logs import FileLog
from penstock.cli.main import main
from penstock.events.query_order import Action

MOMENT_MS = 1_794_830_400_000


@pytest.fixture
def data(tmp_path: Path) -> Path:
    Checkpoint(tmp_path / "analyze" / "checkpoints", "totals").keep(Kept(writes="out"))
    return tmp_path


def run(data: Path, *words: str) -> int:
    return main(["queries", *words, "--data", str(data)])


def test_an_order_is_kept_for_the_next_start(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("pause", "resume", "restart"):
        assert run(data, action, "totals") == 0
    assert run(data, "start", "totals", "--from", "latest") == 0
    assert run(data, "start", "totals", "--from", "2026-11-16T12:00:00Z") == 0
    assert run(data, "start", "totals", "--keep-state") == 0
    assert capsys.readouterr().out.count("totals: the order is kept, and obeyed at the next start of the app") == 6
    orders = FileLog(data).orders()
    assert [order.action for order in orders] == ["pause", "resume", "restart", "start", "start", "start"]
    assert [(order.begin, order.keep_state) for order in orders[3:]] == [
        ("latest", False), (str(MOMENT_MS), False), ("", True),
    ]  # fmt: skip
    assert len({order.id for order in orders}) == 6


def test_what_drop_removes_is_named_first(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(data, "drop", "totals", "--yes") == 0
    assert "removes the checkpoint of totals, and, unless the app still uses them, the topics out" in (
        capsys.readouterr().err
    )
    assert FileLog(data).orders()[0].action is Action.DROP


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("start", "totals"), "give either --from"),
        (("start", "totals", "--from", "latest", "--keep-state"), "give either --from"),
        (("start", "totals", "--from", "42"), "not at an offset"),
        (("start", "totals", "--from", "noon"), "--from: 'noon' is none of"),
        (("pause", "total"), "no query total has run on"),
        (("pause", "totals", "--broker", "127.0.0.1:1"), "give --data or --broker, not both"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(
    data: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert run(data, *words) == 2
    assert said in capsys.readouterr().err
    assert FileLog(data).orders() == []


def test_a_broker_may_be_named_before_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also in the folder of a run."""
    (tmp_path / ".penstock" / "run").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main(["queries", "--broker", "127.0.0.1:1", "pause", "totals"]) == 1
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err
    assert main(["queries", "pause", "totals"]) == 2
    assert "no query totals has run on .penstock" in capsys.readouterr().err
