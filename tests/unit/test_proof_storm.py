"""The storm's own parts: the weather repeats by its seed, histories of processes become one."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException

from penstock.assure.history import HistoryError, Outcome, Send, Settle, Unrecorded
from penstock.config.broker import BrokerConfig
from penstock.drills import broker_process
from penstock.drills.broker_process import BrokerProcess
from penstock.errors import PenstockError
from proof.storm import __main__ as storm
from proof.storm.client_processes import FULL, Player
from proof.storm.fault_schedule import DISK_KINDS, FIRST, KINDS, SYNC_KINDS, Deed, Weather
from proof.storm.recording import StampedRecorder, join_histories
from proof.storm.timeline import LANE_OF

PLAYERS = [part.name for part in FULL]
DEADLINE_S = 60.0


def deeds(seed: int, count: int) -> list[Deed]:
    weather = Weather(seed, PLAYERS, disk=True, syncs=True)
    return [weather.next() for _ in range(count)]


def test_a_seed_repeats_the_weather() -> None:
    assert deeds(7, 200) == deeds(7, 200)
    assert deeds(7, 200) != deeds(8, 200)


def test_a_storm_begins_with_kills_and_one_of_each_kind() -> None:
    """Broker, proxy and clients are killed even in a short one."""
    kinds = [*KINDS, *DISK_KINDS, *SYNC_KINDS]
    first = [deed.kind for deed in deeds(7, len(kinds))]
    assert first[: len(FIRST)] == list(FIRST)
    assert {"kill-broker", "kill-proxy", "kill-client"} <= set(FIRST)
    assert sorted(first) == sorted(kinds)


def test_every_deed_has_its_lane_in_the_picture() -> None:
    lanes = ("broker", "network", "disk", *PLAYERS)
    assert {LANE_OF.get(deed.kind, deed.target) for deed in deeds(7, 200)} <= set(lanes)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], PenstockError("the broker ended by itself")),
        (["--kafka"], KafkaException(KafkaError(KafkaError._TIMED_OUT))),
        (["--no-disk"], PenstockError("the broker ended by itself")),
        (["--no-disk", "--plant", "repeats-forgotten"], PenstockError("the broker ended by itself")),
    ],
)
def test_a_storm_that_fails_says_how_to_repeat_it_and_leaves_no_verdict_of_another(
    options: list[str], error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has every option that was given, once."""
    asked: list[dict[str, Any]] = []

    def fail(*_: object, **options: Any) -> None:
        asked.append(options)
        raise error

    monkeypatch.setattr(storm, "run_storm", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = tmp_path / "report"
    before.mkdir()
    for name in storm.REPORTS:
        (before / name).write_text("valid")
    report = ["--report", str(before)]
    told = CliRunner().invoke(storm.command, ["--minutes", "2", "--seed", "7", *options, *report])
    repeat = told.output.splitlines()[-1].removeprefix("repeat: ")
    words = shlex.split(repeat)
    assert (told.exit_code, list(before.iterdir())) == (1, [])
    assert words[:4] == ["make", "storm", "MINUTES=2", "SEED=7"]
    assert [word.removeprefix("ARGS=").split() for word in words[4:]] == ([options] if options else [])
    given = "".join(words[4:]).removeprefix("ARGS=").split()
    CliRunner().invoke(storm.command, ["--minutes", "2", "--seed", "7", *given, *report])
    assert asked[1] == asked[0]


def test_a_plant_is_refused_where_it_cannot_grow() -> None:
    told = CliRunner().invoke(storm.command, ["--kafka", "--plant", "repeats-forgotten"])
    assert (told.exit_code, "give either --kafka or --plant" in told.output) == (2, True)


@pytest.mark.parametrize("minutes", ["0", "-1"])
def test_a_storm_without_time_is_refused(minutes: str) -> None:
    told = CliRunner().invoke(storm.command, ["--minutes", minutes])
    assert (told.exit_code, "is not in the range x>0" in told.output) == (2, True)


def test_reports_do_not_go_where_the_broker_keeps_its_data() -> None:
    """The default data folder must stay one that a broker takes."""
    report = next(option for option in storm.command.params if option.name == "report")
    assert Path(BrokerConfig().data) not in [report.default, *Path(str(report.default)).parents]


def test_a_broker_that_does_not_start_is_told_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it said nothing itself."""
    mute = BrokerProcess(tmp_path / "data", tmp_path, command=(sys.executable, "-c", "import sys; sys.exit(5)"))
    with pytest.raises(PenstockError, match="the broker did not start: exit status 5"):
        mute.start()
    monkeypatch.setattr(broker_process, "READY_WITHIN_S", 0.0)
    slow = BrokerProcess(tmp_path / "data", tmp_path, command=(sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(PenstockError, match="the broker did not start: not ready within 0 s"):
        slow.start()


def test_a_client_that_has_just_begun_hears_what_it_is_told(tmp_path: Path) -> None:
    """A signal before it can listen waits, and does not end it as if it had given up."""
    player = Player(FULL[0], "127.0.0.1:1", tmp_path, 7)
    player.start()
    player.signal(signal.SIGUSR1)
    player.signal(signal.SIGTERM)
    player.back_at = float("inf")
    deadline = time.monotonic() + DEADLINE_S
    while player.is_alive and time.monotonic() < deadline:
        player.tend(time.monotonic())
    assert (player.is_alive, player.gave_up, player.said) == (False, 0, [])


def test_histories_are_joined_in_the_order_in_which_things_happened(tmp_path: Path) -> None:
    one, other = StampedRecorder(tmp_path / "one.jsonl"), StampedRecorder(tmp_path / "other.jsonl")
    events = [
        Send("one", "t", 0, "a"),
        Send("other", "t", 0, "b"),
        Settle("one", "t", 0, "a", Outcome.OK, 0),
        Settle("other", "t", 0, "b", Outcome.UNKNOWN),
    ]
    for recorder, event in zip((one, other, one, other), events, strict=True):
        recorder.record(event)
    one.close()
    other.close()

    assert [event for _, event in join_histories(sorted(tmp_path.iterdir()))] == events


def test_a_history_cut_short_is_incomplete_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    cut, damaged = tmp_path / "cut.jsonl", tmp_path / "damaged.jsonl"
    recorder = StampedRecorder(cut)
    recorder.record(Send("one", "t", 0, "a"), Send("one", "t", 0, "b"))
    recorder.close()
    damaged.write_bytes(b"12.0 {}\n")
    cut.write_bytes(cut.read_bytes()[:-5])

    assert [type(event) for _, event in join_histories([cut])] == [Send, Unrecorded]
    with pytest.raises(HistoryError, match=r"line 1 of damaged\.jsonl"):
        list(join_histories([damaged]))
