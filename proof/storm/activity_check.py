"""Whether a storm was one: a calm that nobody worked in proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from penstock.assure.history import Ended, Event, Outcome, Settle
from penstock.assure.verdict import Doubt, Reason, Result, Verdict
from proof.storm.client_processes import Part
from proof.storm.fault_schedule import Span
from proof.storm.recording import Stamped


class ActivityCheck:
    """Looks at a history as it passes by, for what a storm must have had."""

    def __init__(self, weather: Span, parts: Sequence[Part]) -> None:
        self._weather = weather
        self._owners = {part.name for part in parts if part.role == "owner"}
        self._acked = 0
        self._ended = 0
        self._aborted = 0

    def watch(self, history: Iterable[Stamped]) -> Iterator[Event]:
        """The same events, looked at."""
        for at, event in history:
            self._take(self._weather.from_s <= at <= self._weather.until_s, event)
            yield event

    def _take(self, is_weather: bool, event: Event) -> None:
        match event:
            case Settle(outcome=Outcome.OK):
                self._acked += is_weather
            case Ended(outcome=Outcome.OK) if event.process.rpartition(".")[0] in self._owners:
                self._ended += is_weather
                self._aborted += not event.commit

    def judge(self, verdict: Verdict, deeds: int) -> Verdict:
        """The verdict, with what is to be doubted because it did not happen."""
        reasons = list(self._doubts(deeds))
        if not reasons:
            return verdict
        doubts = dict(verdict.doubts)
        for reason in reasons:
            doubts[reason.doubt] = doubts.get(reason.doubt, 0) + 1
        result = Result.UNKNOWN if verdict.result is Result.VALID else verdict.result
        return msgspec.structs.replace(verdict, result=result, reasons=(*verdict.reasons, *reasons), doubts=doubts)

    def _doubts(self, deeds: int) -> Iterator[Reason]:
        if not deeds:
            yield Reason(Doubt.NO_DEED, "nothing was made to go wrong")
        if not self._acked:
            yield Reason(Doubt.NO_ACKED_SEND, "nothing was acknowledged during the weather")
        if self._owners and not self._ended:
            yield Reason(Doubt.NO_ENDED_TRANSACTION, "no owner's transaction ended during the weather")
        if self._owners and not self._aborted:
            yield Reason(Doubt.NO_ENDED_TRANSACTION, "no owner's transaction was aborted")
