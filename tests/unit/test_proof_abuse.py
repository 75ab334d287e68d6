"""What a siege says of its normal client: judged by the calms before, between and after its phases."""

from __future__ import annotations

import itertools
import os
import resource
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.assure.verdict import Result
from proof.abuse import abuse_test as siege
from proof.abuse.abuse_test import TIMES_MAX, Outcome, Phase
from proof.abuse.latency_probe import BEAT_S, Beat, Pulse, beat_until_told, beats_until, syncing


def outcome(*slow_ms: float, disk_ms: tuple[float, ...] = ()) -> Outcome:
    """Calm and siege by turns, one second each; one beat in fifty takes as long as said, the others nothing."""
    seconds = range(len(slow_ms))
    phases = [Phase(f"phase {n}", n, n + 1, 1 << 20, is_calm=n % 2 == 0) for n in seconds]
    return Outcome(1, phases, pulse_of(slow_ms), pulse_of(disk_ms), [])


def pulse_of(slow_ms: tuple[float, ...]) -> Pulse:
    pulse = Pulse()
    for second, slow in enumerate(slow_ms):
        pulse.beats += [Beat(second + beat / 100, 0.1 if beat % 50 else slow) for beat in range(100)]
    return pulse


@pytest.mark.parametrize(
    ("before_ms", "siege_ms", "after_ms", "said"),
    [
        (2.0, 2.0 * TIMES_MAX, 3.0, Result.VALID),
        (2.0, 5.0, 2.0, Result.INVALID),
        (2.0, 5.0, 3.0, Result.UNKNOWN),
        (3.0, 5.0, 2.0, Result.UNKNOWN),
    ],
)
def test_a_doubled_p99_convicts_only_beside_a_calm_that_is_one(
    before_ms: float, siege_ms: float, after_ms: float, said: Result
) -> None:
    """Valid by both calms, invalid by both; a machine whose own noise decides it proves nothing."""
    judged = outcome(before_ms, siege_ms, after_ms)

    assert judged.verdict() is said
    assert list(judged.lines())[-1].startswith(f"a normal client is unhurt: {said} (")


def test_calms_that_do_not_agree_prove_nothing() -> None:
    """A client as slow as in one of them and much slower than in the other: nobody knows what the machine did."""
    assert outcome(1.0, 1.5, 2.5).verdict() is Result.UNKNOWN
    assert outcome(2.5, 1.5, 1.0).verdict() is Result.UNKNOWN


def test_noise_in_a_few_calms_decides_nothing() -> None:
    """Of five calms one may be disturbed: no phase is measured by it, but it may speak for its neighbours."""
    assert outcome(50.0, 1.9, 1.0, 1.9, 1.0, 1.9, 1.0, 1.9, 1.0).verdict() is Result.VALID
    assert outcome(50.0, 2.1, 1.0, 1.9, 1.0, 1.9, 1.0, 1.9, 1.0).verdict() is Result.UNKNOWN
    assert outcome(1.0, 2.1, 1.0, 1.9, 50.0, 1.9, 1.0, 1.9, 1.0).verdict() is Result.INVALID


def test_noise_that_lasts_from_a_calm_into_a_phase_is_not_held_against_the_siege() -> None:
    """Nor is it proof of anything; the same phase between quiet calms convicts."""
    assert outcome(90.0, 40.0, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 1.0).verdict() is Result.UNKNOWN
    assert outcome(1.0, 40.0, 1.0, 1.5, 1.0, 1.5, 1.0, 1.5, 90.0).verdict() is Result.INVALID


@pytest.mark.parametrize(
    ("disk_ms", "said"),
    [
        ((0.2, 30.0, 0.2), Result.UNKNOWN),  # the client waits for a disk that hangs, and no longer
        ((0.2, 4.0, 0.2), Result.INVALID),  # slow, but that is not what the client waited for
        ((30.0, 0.2, 30.0), Result.INVALID),  # at another time
        ((), Result.INVALID),  # nobody looked
    ],
)
def test_a_disk_that_hangs_without_the_broker_too_is_not_held_against_the_siege(
    disk_ms: tuple[float, ...], said: Result
) -> None:
    """Nor does it prove that the client was unhurt."""
    assert outcome(1.0, 31.0, 1.0, disk_ms=disk_ms).verdict() is said


def test_a_hanging_disk_does_not_unsay_a_valid_phase() -> None:
    assert outcome(1.0, 1.9, 1.0, disk_ms=(0.2, 30.0, 0.2)).verdict() is Result.VALID


def test_harm_that_lasts_is_not_taken_for_the_machines_own_pace() -> None:
    """A broker that the first phase made ten times slower for good is so in every calm but the first."""
    assert outcome(1.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0).verdict() is Result.UNKNOWN


@pytest.mark.parametrize("second", [0, 1, 2])
def test_a_part_in_which_the_client_was_never_seen_is_not_valid(second: int) -> None:
    """No beats, no proof; also in a calm."""
    judged = outcome(2.0, 2.0, 2.0)
    judged.pulse.beats = [beat for beat in judged.pulse.beats if not second <= beat.at_s < second + 1]

    assert judged.verdict() is Result.UNKNOWN


CROWD_S, AFTER_S, END_S = 610.0, 620.0, 630.0  # ten seconds of calm, 600 of frames, ten each of a crowd and of calm


def beats_between(from_s: float, until_s: float, ack_s: float) -> list[Beat]:
    """What a client notes whose every acknowledgement takes so long."""
    beats: list[Beat] = []
    due_s = from_s
    while due_s < until_s:
        beats += beats_until(due_s, min(due_s + ack_s, until_s))
        due_s = beats[-1].at_s + BEAT_S
    return beats


def crowded(in_the_crowd: list[Beat]) -> Outcome:
    """A million frames that hurt nobody, then a crowd."""
    phases = [
        Phase("calm before", 0.0, 10.0, 1 << 20, is_calm=True),
        Phase("frames", 10.0, CROWD_S, 1 << 20),
        Phase("crowd", CROWD_S, AFTER_S, 1 << 20),
        Phase("calm after", AFTER_S, END_S, 1 << 20, is_calm=True),
    ]
    pulse = Pulse()
    pulse.beats = [*beats_between(0.0, CROWD_S, 0.001), *in_the_crowd, *beats_between(AFTER_S, END_S, 0.001)]
    return Outcome(1_000_000, phases, pulse, Pulse(), [])


def test_a_crowd_that_hurts_nobody_is_valid() -> None:
    assert crowded(beats_between(CROWD_S, AFTER_S, 0.001)).verdict() is Result.VALID


@pytest.mark.parametrize("ack_s", [AFTER_S - CROWD_S, 0.2])
def test_a_stall_in_a_short_phase_convicts_though_the_long_one_was_well(ack_s: float) -> None:
    """Frozen for the whole phase, one acknowledgement is all there is; 200 ms each, there are few."""
    judged = crowded(beats_between(CROWD_S, AFTER_S, ack_s))

    assert judged.verdict() is Result.INVALID
    assert judged.times()[0] > 100


def test_no_answer_at_all_convicts() -> None:
    """It lost its connection; where nobody knows whether it tried, nothing is known."""
    judged = crowded([])
    assert judged.verdict() is Result.UNKNOWN
    judged.pulse.is_lost = True
    assert judged.verdict() is Result.INVALID


def test_records_that_were_due_during_a_stall_waited_too() -> None:
    waited = beats_until(1.0, 1.0 + 3.5 * BEAT_S)

    assert [round(beat.took_ms / BEAT_S / 1e3, 3) for beat in waited] == [3.5, 2.5, 1.5, 0.5]
    assert len(beats_until(1.0, 1.0)) == 1


def test_the_pulse_of_the_disk_syncs_until_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends when its standard input does, and leaves no file behind."""
    reads, writes = os.pipe()
    stdin, told, count = os.fdopen(reads), os.fdopen(writes, "w"), itertools.count(1)
    monkeypatch.setattr(sys, "stdin", stdin)
    beats: list[Beat] = []

    with stdin, syncing(str(tmp_path)) as sync:

        def beat() -> None:
            sync()
            if next(count) == 3:
                told.close()

        beat_until_told(beat, 0.001, beats)

    assert next(count) == 4
    assert len(beats) >= 3
    assert all(each.took_ms > 0 for each in beats)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written_to_is_a_lost_pulse(tmp_path: Path) -> None:
    with Pulse.of_disk(tmp_path / "not-there") as disk:
        pass
    assert disk.is_lost


@pytest.mark.parametrize("option", ["--frames", "--connections"])
def test_fewer_than_none_are_refused(option: str) -> None:
    told = CliRunner().invoke(siege.command, [option, "-1"])
    assert (told.exit_code, "is not in the range x>=0" in told.output) == (2, True)


@pytest.mark.parametrize(
    ("siege_ms", "troubles", "status"), [(2.0, [], 0), (2.0, ["it grew"], 1), (9.0, [], 3), (5.0, [], 4)]
)
def test_only_a_proof_ends_with_status_0_and_without_its_data(
    siege_ms: float, troubles: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a storm: 3 hurt, 4 unknown, 1 a trouble of another kind; each leaves data and the command that repeats it."""
    judged = outcome(2.0, siege_ms, 3.0)._replace(troubles=troubles)
    monkeypatch.setattr(siege.Siege, "run", lambda *_, **__: judged)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)  # those of this process stay

    told = CliRunner().invoke(siege.command, ["--frames", "7", "--seed", "5"])

    assert told.exit_code == status
    assert len(list(tmp_path.iterdir())) == (status != 0)
    assert told.output.endswith("repeat: make siege FRAMES=7 SEED=5\n") == (status != 0)
