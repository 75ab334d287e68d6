"""Judges a history: `check(history) -> Verdict`. Reads it once, front to back."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.assure.evidence import Evidence
from penstock.assure.group_checks import find_group_doubts, find_group_faults
from penstock.assure.group_evidence import Dealings, Place
from penstock.assure.history import Assign, End, Event, Poll, Send, Settle, Trim, Unrecorded
from penstock.assure.log_checks import LOG_CHECKS, Case, find_doubts
from penstock.assure.transaction_checks import (
    Views,
    find_transaction_doubts,
    find_transaction_faults,
    find_view_faults,
)
from penstock.assure.verdict import Doubt, Finding, Reason, Result, Tally, Verdict, Violation

# A log that lost its head breaks one promise a million times; the first few tell as much.
FINDINGS_MAX = 20


def check(history: Iterable[Event], *, findings_max: int = FINDINGS_MAX) -> Verdict:
    """Judge a history; keeps at most `findings_max` findings and reasons of each name, but counts all."""
    gathered = _Gathered()
    for event in history:
        gathered.take(event)
    docket = _Docket(findings_max)
    for reason in gathered.incomplete:
        docket.doubt(reason)
    everything, committed, dealings = gathered.everything, gathered.committed, gathered.dealings
    for place in sorted(everything):
        case = Case(everything[place])
        for find in LOG_CHECKS:
            docket.convict(find(case))
        for reason in find_doubts(case):
            docket.doubt(reason)
    views = Views(everything, committed)
    docket.convict(find_view_faults(views))
    docket.convict(find_transaction_faults(dealings, views))
    docket.convict(find_group_faults(dealings, everything, committed))
    for reason in (
        *find_transaction_doubts(dealings, views),
        *find_group_doubts(dealings, everything, committed),
    ):
        docket.doubt(reason)
    tally = _tally(gathered)
    if not tally.acked:
        docket.doubt(Reason(Doubt.NO_ACKED_SEND, "no send was acknowledged, so nothing was promised"))
    return docket.verdict(tally)


class _Docket:
    """Collects what the checks say and rules on it."""

    def __init__(self, findings_max: int) -> None:
        self._max = findings_max
        self._findings: list[Finding] = []
        self._reasons: list[Reason] = []
        self._violations: dict[Violation, int] = {}
        self._doubts: dict[Doubt, int] = {}

    def convict(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            count = self._violations[finding.violation] = self._violations.get(finding.violation, 0) + 1
            if count <= self._max:
                self._findings.append(finding)

    def doubt(self, reason: Reason) -> None:
        count = self._doubts[reason.doubt] = self._doubts.get(reason.doubt, 0) + 1
        if count <= self._max:
            self._reasons.append(reason)

    def verdict(self, tally: Tally) -> Verdict:
        result = Result.VALID
        if self._doubts:
            result = Result.UNKNOWN
        if self._violations:
            result = Result.INVALID
        findings, reasons = tuple(self._findings), tuple(self._reasons)
        return Verdict(result, findings, reasons, self._violations, self._doubts, tally)


class _Gathered:
    """A history, sorted into evidence."""

    def __init__(self) -> None:
        self.events = 0
        self.everything: dict[Place, Evidence] = {}
        # The partitions as readers of committed records see them: what was aborted is not there.
        self.committed: dict[Place, Evidence] = {}
        self.dealings = Dealings()
        self.incomplete: list[Reason] = []
        self._committed_readers: set[tuple[str, int, str, int]] = set()

    def take(self, event: Event) -> None:
        """The next event."""
        self.events += 1
        number, dealings = self.events, self.dealings
        match event:
            case Send():
                self._of(event).on_send(number, event)
                dealings.on_send(number, event)
            case Settle():
                self._of(event).on_settle(number, event)
            case Poll():
                self._seen_by(event).on_poll(number, event)
                dealings.on_poll(event)
            case Assign():
                if event.committed:
                    self._committed_readers.add((event.process, event.assignment, event.topic, event.partition))
                self._seen_by(event).on_assign(number, event)
                dealings.on_assign(number, event)
            case End():
                self._seen_by(event).on_end(number, event)
            case Trim():
                self._of(event).on_trim(event)
                self._committed_at((event.topic, event.partition)).on_trim(event)
            case Unrecorded():
                sentence = f"events of {event.process} are missing from event {number} on: {event.reason}"
                self.incomplete.append(Reason(Doubt.INCOMPLETE, sentence))
            case _:
                dealings.take(number, event)

    def _of(self, event: Send | Settle | Trim | Poll | Assign | End) -> Evidence:
        place = (event.topic, event.partition)
        return self.everything.get(place) or self.everything.setdefault(place, Evidence(*place))

    def _seen_by(self, event: Poll | Assign | End) -> Evidence:
        everything = self._of(event)
        if (event.process, event.assignment, event.topic, event.partition) not in self._committed_readers:
            return everything
        return self._committed_at((event.topic, event.partition))

    def _committed_at(self, place: Place) -> Evidence:
        return self.committed.get(place) or self.committed.setdefault(place, Evidence(*place))


def _tally(gathered: _Gathered) -> Tally:
    partitions = gathered.everything.values()
    transactions = gathered.dealings.transactions.values()
    writes = acked = failed = unknown = unknown_seen = repeated = 0
    for evidence in partitions:
        for write in evidence.writes.values():
            if not write.sends:
                continue
            writes += 1
            repeated += bool(write.more) and not write.once
            if write.acked:
                acked += 1
            elif write.failed:
                failed += 1
            else:
                unknown += 1
                unknown_seen += write.read_offset is not None
    return Tally(
        events=gathered.events,
        partitions=len(partitions),
        writes=writes,
        acked=acked,
        failed=failed,
        unknown=unknown,
        unknown_seen=unknown_seen,
        offsets_read=sum(len(evidence.at) for evidence in partitions),
        repeated=repeated,
        transactions=len(transactions),
        committed=sum(one.is_committed for one in transactions),
        aborted=sum(one.is_aborted for one in transactions),
        positions=sum(len(share.advances) for share in gathered.dealings.shares.values()),
    )
