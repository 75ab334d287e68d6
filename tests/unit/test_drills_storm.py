"""The storm's own parts: the weather repeats by its seed, histories of processes become one."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.assure.history import HistoryError, Outcome, Send, Settle, Unrecorded
from penstock.drills.storm.cast import FULL
from penstock.drills.storm.recording import StampedRecorder, join_histories
from penstock.drills.storm.weather import DISK_KINDS, KINDS, SYNC_KINDS, Deed, Weather

PLAYERS = [part.name for part in FULL]


def deeds(seed: int, count: int) -> list[Deed]:
    weather = Weather(seed, PLAYERS, disk=True, syncs=True)
    return [weather.next() for _ in range(count)]


def test_a_seed_repeats_the_weather() -> None:
    assert deeds(7, 200) == deeds(7, 200)
    assert deeds(7, 200) != deeds(8, 200)


def test_a_storm_begins_with_a_kill_and_one_of_each_kind() -> None:
    kinds = [*KINDS, *DISK_KINDS, *SYNC_KINDS]
    first = deeds(7, len(kinds))
    assert first[0].kind == "kill-broker"
    assert sorted(deed.kind for deed in first) == sorted(kinds)


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
