"""Judges a history: `check(history) -> Verdict`. Reads it once, front to back."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.assure.evidence import Evidence
from penstock.assure.history import Assign, End, Event, Poll, Send, Settle, Trim, Unrecorded
from penstock.assure.log_checks import LOG_CHECKS, Case, find_doubts
from penstock.assure.verdict import Doubt, Finding, Reason, Result, Tally, Verdict, Violation

# A log that lost its head breaks one promise a million times; the first few tell as much.
FINDINGS_MAX = 20


def check(history: Iterable[Event], *, findings_max: int = FINDINGS_MAX) -> Verdict:
    """Judge a history; keeps at most `findings_max` findings and reasons of each name, but counts all."""
    events, partitions, incomplete = _gather(history)
    docket = _Docket(findings_max)
    for reason in incomplete:
        docket.doubt(reason)
    for evidence in partitions:
        case = Case(evidence)
        for find in LOG_CHECKS:
            for finding in find(case):
                docket.convict(finding)
        for reason in find_doubts(case):
            docket.doubt(reason)
    tally = _tally(events, partitions)
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

    def convict(self, finding: Finding) -> None:
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


def _gather(history: Iterable[Event]) -> tuple[int, list[Evidence], list[Reason]]:
    partitions: dict[tuple[str, int], Evidence] = {}
    incomplete: list[Reason] = []
    number = 0
    for number, event in enumerate(history, start=1):
        if isinstance(event, Unrecorded):
            sentence = f"events of {event.process} are missing from event {number} on: {event.reason}"
            incomplete.append(Reason(Doubt.INCOMPLETE, sentence))
            continue
        key = (event.topic, event.partition)
        evidence = partitions.get(key)
        if evidence is None:
            evidence = partitions[key] = Evidence(*key)
        match event:
            case Send():
                evidence.on_send(number, event)
            case Settle():
                evidence.on_settle(number, event)
            case Poll():
                evidence.on_poll(number, event)
            case Assign():
                evidence.on_assign(number, event)
            case End():
                evidence.on_end(number, event)
            case Trim():
                evidence.on_trim(event)
    return number, [partitions[key] for key in sorted(partitions)], incomplete


def _tally(events: int, partitions: list[Evidence]) -> Tally:
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
        events=events,
        partitions=len(partitions),
        writes=writes,
        acked=acked,
        failed=failed,
        unknown=unknown,
        unknown_seen=unknown_seen,
        offsets_read=sum(len(evidence.at) for evidence in partitions),
        repeated=repeated,
    )
