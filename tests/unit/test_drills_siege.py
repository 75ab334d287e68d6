"""What a siege says of its normal client: judged by the calm before it and the calm after it."""

from __future__ import annotations

import pytest

from penstock.assure.verdict import Result
from penstock.drills.pulse import Beat, Pulse
from penstock.drills.siege import TIMES_MAX, Outcome, Phase


def outcome(before_ms: float, siege_ms: float, after_ms: float) -> Outcome:
    """One second each; one beat in fifty takes as long as said, the others nothing."""
    pulse = Pulse(1, "unhurt")
    for second, slow_ms in enumerate((before_ms, siege_ms, after_ms)):
        pulse.beats += [Beat(second + beat / 100, 0.1 if beat % 50 else slow_ms) for beat in range(100)]
    phases = [Phase(f"phase {second}", second, second + 1, 1 << 20) for second in range(3)]
    return Outcome(1, phases, pulse, [])


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


def test_a_siege_in_which_the_client_was_never_answered_is_not_valid() -> None:
    """No beats, no proof."""
    judged = outcome(2.0, 2.0, 2.0)
    judged.pulse.beats = [beat for beat in judged.pulse.beats if not 1 <= beat.at_s < 2]

    assert judged.verdict() is Result.UNKNOWN
