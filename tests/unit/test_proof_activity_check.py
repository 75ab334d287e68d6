"""A storm in which almost nothing happened proves nothing, whatever its history says."""

from __future__ import annotations

import pytest

from penstock.assure.history import Ended, Event, Outcome, Settle
from penstock.assure.verdict import Doubt, Result, Tally, Verdict
from proof.storm.activity_check import ActivityCheck
from proof.storm.client_processes import FULL
from proof.storm.fault_schedule import Span

ACKED = Settle("writer-c.0", "records", 0, "a", Outcome.OK, 0)
COMMITTED = Ended("owner-c.1", "owner-c.1-0", True, Outcome.OK)
ABORTED = Ended("owner-k.0", "owner-k.0-0", False, Outcome.OK)
STORMY = [(12.0, ACKED), (13.0, COMMITTED), (25.0, ABORTED)]


def judged(history: list[tuple[float, Event]], deeds: int = 4, result: Result = Result.VALID) -> Verdict:
    """The weather lasted from 10 to 20."""
    witness = ActivityCheck(Span(10.0, 20.0), FULL)
    assert list(witness.watch(history)) == [event for _, event in history]
    return witness.judge(Verdict(result, (), (), {}, {}, Tally()), deeds)


def test_a_storm_with_deeds_acknowledgements_and_both_ends_of_transactions_may_be_valid() -> None:
    assert judged(STORMY) == Verdict(Result.VALID, (), (), {}, {}, Tally())


@pytest.mark.parametrize(
    ("history", "deeds", "doubt", "why"),
    [
        (STORMY, 0, Doubt.NO_DEED, "nothing was made to go wrong"),
        ([(21.0, ACKED), *STORMY[1:]], 4, Doubt.NO_ACKED_SEND, "nothing was acknowledged during the weather"),
        ([STORMY[0], STORMY[2]], 4, Doubt.NO_ENDED_TRANSACTION, "no owner's transaction ended during the weather"),
        (STORMY[:2], 4, Doubt.NO_ENDED_TRANSACTION, "no owner's transaction was aborted"),
    ],
)
def test_what_did_not_happen_is_a_doubt(history: list[tuple[float, Event]], deeds: int, doubt: Doubt, why: str) -> None:
    """Unknown, with the doubt's name; a copier's transaction is not an owner's, the calm is no weather."""
    copied = Ended("copier-1.0", "copier-1.0-0", False, Outcome.OK)
    verdict = judged([*history, (14.0, copied)], deeds)

    assert (verdict.result, verdict.doubts) == (Result.UNKNOWN, {doubt: 1})
    assert [reason.sentence for reason in verdict.reasons] == [why]


def test_a_broken_promise_stays_broken_though_little_happened() -> None:
    verdict = judged([], 0, Result.INVALID)

    assert verdict.result is Result.INVALID
    assert len(verdict.reasons) == 4
