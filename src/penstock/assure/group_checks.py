"""The promises of groups: every record is seen, and no position is lost or taken back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

from penstock.assure.evidence import Evidence
from penstock.assure.group_evidence import OPEN, Advance, Dealings, Place, Share
from penstock.assure.log_checks import Case
from penstock.assure.verdict import Doubt, Finding, Reason, Violation


def find_group_faults(
    dealings: Dealings, everything: Mapping[Place, Evidence], committed: Mapping[Place, Evidence]
) -> Iterator[Finding]:
    """Every broken promise about groups."""
    for (group, topic, partition), share in dealings.shares.items():
        evidence = (committed if share.committed else everything).get((topic, partition))
        if evidence is not None:
            case = Case(evidence)
            for find in (_find_missed, _find_lost_positions, _find_positions_taken_back):
                yield from find(group, share, case)


def find_group_doubts(
    dealings: Dealings, everything: Mapping[Place, Evidence], committed: Mapping[Place, Evidence]
) -> Iterator[Reason]:
    """Groups that were not seen to come to the end of what they read."""
    for (group, topic, partition), share in dealings.shares.items():
        evidence = (committed if share.committed else everything).get((topic, partition))
        last = max(evidence.at, default=-1) if evidence is not None else -1
        position = share.looks[-1].offset or 0 if share.looks else 0
        if position <= last:
            what = f"group {group} was last seen at {position} of {topic}/{partition}, which has a record at {last}"
            yield Reason(Doubt.GROUP_BEHIND, what)


def _find_missed(group: str, share: Share, case: Case) -> Iterator[Finding]:
    """A group whose position is past a record has been given it."""
    if not share.looks:
        return
    look = share.looks[-1]
    low, end = case.evidence.trimmed, look.offset or 0
    for offset, write in case.evidence.at.items():
        if low <= offset < end and offset in case.final_covers and offset not in share.offsets:
            what = f"group {group} stands at {end}, and no member was given {write.value} at {offset}"
            events = (write.read_event, look.answered)
            yield case.finding(Violation.MISSED_BY_GROUP, offset, write.value, events, what)


def _find_lost_positions(group: str, share: Share, case: Case) -> Iterator[Finding]:
    """A position is what somebody committed, and nothing older than what was acknowledged before one asked."""
    acked = sorted((advance.last_moment, advance.begun) for advance in share.advances if advance.is_acked)
    ends = [end for end, _ in acked]
    begins = list(accumulate((begun for _, begun in acked), max))
    # Where nothing was committed there is no position: as if it had been committed before everything.
    writes: dict[int | None, list[tuple[int, int]]] = {None: [(0, 0)]}
    for advance in share.advances:
        if not advance.is_void:
            writes.setdefault(advance.offset, []).append((advance.begun, advance.last_moment))
    for look in share.looks:
        before = bisect_left(ends, look.asked)
        floor = begins[before - 1] if before else 0
        if any(begun < look.answered and floor <= last for begun, last in writes.get(look.offset, ())):
            continue
        newest = max(
            (a for a in share.advances if a.is_acked and a.last_moment < look.asked),
            key=lambda advance: advance.begun,
            default=None,
        )
        known = f"{newest.offset} had been committed by {newest.process}" if newest else "nobody had committed that"
        what = f"group {group} was said to stand at {look.offset}, though {known}"
        events = (newest.begun if newest else 0, look.asked, look.answered)
        yield case.finding(Violation.POSITION_LOST, look.offset, None, events, what)


def _find_positions_taken_back(group: str, share: Share, case: Case) -> Iterator[Finding]:
    """Who was given a partition before another went on with it cannot commit for it any more."""
    alone = [advance for advance in share.advances if advance.transaction is None and advance.is_acked]
    by_end = sorted(alone, key=lambda advance: advance.done)
    ends = [advance.done for advance in by_end]
    farthest = list(accumulate(by_end, _farther))
    for late in alone:
        before = bisect_left(ends, late.begun)
        other = farthest[before - 1] if before else None
        if other is None or other.offset <= late.offset or other.process == late.process:
            continue
        if 0 < late.since < other.begun < other.done < OPEN:
            what = (
                f"group {group}: {late.process} took its position back to {late.offset}, "
                f"after {other.process} had committed {other.offset}"
            )
            yield case.finding(Violation.POSITION_TAKEN_BACK, late.offset, None, (other.begun, late.begun), what)


def _farther(one: Advance, other: Advance) -> Advance:
    return other if other.offset > one.offset else one
